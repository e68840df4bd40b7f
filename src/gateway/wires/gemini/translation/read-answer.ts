import { eventReader } from '../../../translation/event-objects.ts';
import type { NeutralUsage } from '../../../translation/neutral-answer.ts';
import { incomplete, isDone, NoAnswer, type Stops, stopOf } from '../../../translation/read-answers.ts';
import type { WireTranslation } from '../../../translation/wire-translation.ts';
import {
  isNothing,
  isObject,
  type JsonObject,
  member,
  objectsOf,
  stringIn,
  tokensIn,
} from '../../lenient.ts';
import { readError, readErrorBody } from '../../model-error.ts';
import { fields } from '../../openai.ts';

/** Reads the chunks of a stream. A whole answer is read as its only chunk. */
export const readAnswer: WireTranslation['read'] = (steps, losses) => {
  let first: number | undefined;
  let reason: unknown;

  const part = (part: JsonObject) => {
    const signature = stringIn(part, 'thoughtSignature');
    const text = stringIn(part, 'text');
    const isThought = part.thought === true;
    if (signature && !isThought) steps.signature(signature, false);
    if (text !== undefined) steps.text(isThought ? 'reasoning' : 'text', text);
    if (isObject(part.functionCall)) {
      const { id, name, args, partialArgs } = part.functionCall;
      if (!isNothing(partialArgs)) steps.refuse('the arguments of a tool call come in parts');
      const given = typeof args === 'string' ? args : JSON.stringify(args ?? {});
      steps.call().add({ id, name, arguments: given }).end();
    } else if (text === undefined && !signature) losses.record('answer.parts', 'answer detail');
    if (signature && isThought) steps.signature(signature, false);
  };

  const take = (chunk: JsonObject) => {
    const isAnswer = (chunk.candidates ?? chunk.promptFeedback ?? chunk.usageMetadata) !== undefined;
    const failure = isAnswer ? readError(chunk.error) : readErrorBody(chunk);
    if (failure.message !== undefined) return steps.failure(failure);
    steps.start(stringIn(chunk, 'responseId'), stringIn(chunk, 'modelVersion'));
    // Each chunk has the counts so far.
    if (isObject(chunk.usageMetadata)) steps.counts(countsOf(chunk.usageMetadata));
    const candidates = objectsOf(chunk.candidates);
    const [at] = candidates.map(({ index }) => Number(index) || 0);
    first ??= at;
    const candidate = candidates.find(({ index }) => (Number(index) || 0) === first);
    // Clients read one candidate, whoever asked for more.
    if (candidates.some((other) => other !== candidate)) losses.record('answer.candidates', 'answer detail');
    if (!candidate && member(chunk.promptFeedback, 'blockReason') !== undefined) {
      steps.text('refusal', stringIn(Object(chunk.promptFeedback), 'blockReasonMessage') ?? '');
      return steps.end('refused');
    }
    const parts = objectsOf([member(candidate?.content, 'parts')].flat());
    for (const each of parts) part(each);
    reason = candidate?.finishReason || reason;
  };

  const readEvent = eventReader(steps, losses, take);
  const finish = () => steps.end(stopOf(stops, reason, losses, 'answer.finishReason'));

  return {
    event(data) {
      if (steps.over || data.trim() === '' || isDone(data)) return;
      readEvent(data);
    },
    end() {
      if (steps.over) return;
      if (reason === undefined) throw incomplete();
      finish();
    },
    document(body) {
      // Without `alt=sse`, a stream is a list of its chunks.
      const chunks = objectsOf([body].flat());
      if (!chunks.some(({ candidates, promptFeedback, error }) => candidates ?? promptFeedback ?? error))
        throw new NoAnswer('gemini');
      for (const chunk of chunks) if (!steps.over) take(chunk);
      if (!steps.over) finish();
    },
  };
};

/** The wire counts thoughts apart from the rest of the output. */
function countsOf(usage: JsonObject): NeutralUsage {
  const of = (name: string) => tokensIn(usage, name);
  const [input, said] = [of('promptTokenCount'), of('candidatesTokenCount')];
  const [cacheRead, reasoning] = [of('cachedContentTokenCount'), of('thoughtsTokenCount')];
  // An answer without text has no count of it.
  const output =
    said === undefined && reasoning === undefined && input === undefined
      ? undefined
      : (said ?? 0) + (reasoning ?? 0);
  return fields({ input, output, cacheRead, reasoning });
}

const stops: Stops = {
  STOP: 'done',
  MAX_TOKENS: 'length',
  SAFETY: 'refused',
  RECITATION: 'refused',
  LANGUAGE: 'refused',
  BLOCKLIST: 'refused',
  PROHIBITED_CONTENT: 'refused',
  SPII: 'refused',
};
