import type { Losses } from '../../translation/losses.ts';
import {
  type NeutralAnswer,
  type NeutralEvent,
  type NeutralStop,
  type NeutralUsage,
  UnreadableAnswer,
  WholeText,
} from '../../translation/neutral-answer.ts';
import type { ModelPart } from '../../translation/neutral-request.ts';
import {
  eventReader,
  incomplete,
  isDone,
  NoAnswer,
  type Stops,
  stopOf,
} from '../../translation/read-answers.ts';
import {
  fields,
  isNothing,
  isObject,
  type JsonObject,
  member,
  objectsOf,
  stringIn,
  tokensIn,
} from '../lenient.ts';
import { readError, readErrorBody } from '../model-error.ts';
import { argumentsObject } from '../openai.ts';
import type { WireTranslation } from '../wire-descriptor.ts';
import { signedParts } from './requests.ts';

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

export const writeAnswer: WireTranslation['writeAnswer'] = (answer, { request, losses }) => {
  const carried = answer.parts.filter((part) => part.type !== 'reasoning' || !part.redacted);
  if (carried.length < answer.parts.length) losses.record('answer.redacted', 'reasoning');
  const parts = signedParts(carried, (part) => partOf(part, losses));
  return {
    candidates: [{ content: { parts, role: 'model' }, finishReason: finishReasons[answer.stop], index: 0 }],
    ...head(answer, request.model),
    usageMetadata: writtenUsage(answer.usage),
  };
};

function head({ id, model }: Pick<NeutralAnswer, 'id' | 'model'>, asked: string): JsonObject {
  return { modelVersion: model ?? asked, responseId: id ?? 'offsite' };
}

const finishReasons: Readonly<Record<NeutralStop, string>> = {
  done: 'STOP',
  tools: 'STOP',
  length: 'MAX_TOKENS',
  context: 'MAX_TOKENS',
  refused: 'SAFETY',
  sequence: 'STOP',
};

function partOf(part: Exclude<ModelPart, { type: 'reasoning' }>, losses: Losses): JsonObject {
  if (part.type !== 'call') return { text: part.text };
  return { functionCall: { id: part.id, name: part.name, args: argumentsObject(part.arguments, losses) } };
}

function writtenUsage({ input, output, cacheRead, reasoning }: NeutralUsage): JsonObject {
  return fields({
    promptTokenCount: input,
    candidatesTokenCount: output === undefined ? undefined : Math.max(0, output - (reasoning ?? 0)),
    thoughtsTokenCount: reasoning,
    cachedContentTokenCount: cacheRead,
    totalTokenCount: input === undefined || output === undefined ? undefined : input + output,
  });
}

export function errorBody(status: number, message: string): JsonObject {
  return { error: { code: status, message, status: statusName(status) } };
}

function statusName(status: number): string {
  const names: Record<number, string> = {
    401: 'UNAUTHENTICATED',
    403: 'PERMISSION_DENIED',
    404: 'NOT_FOUND',
    429: 'RESOURCE_EXHAUSTED',
    503: 'UNAVAILABLE',
    504: 'DEADLINE_EXCEEDED',
  };
  return names[status] ?? (status >= 500 ? 'INTERNAL' : 'INVALID_ARGUMENT');
}

/** The wire carries a call in one piece, so its arguments are kept until they are complete. */
export const writeStream: WireTranslation['writeStream'] = ({ request, losses }, emit) => {
  let about: JsonObject = {};
  let call = { id: '', name: '' };
  /** For the next part that is no thought. */
  let signature: string | undefined;
  const whole = new WholeText();
  const send = (part: JsonObject, more: JsonObject = {}, usage: JsonObject = {}) => {
    const candidates = [{ content: { parts: [part], role: 'model' }, ...more, index: 0 }];
    emit({ event: undefined, data: { candidates, ...about, ...usage } });
  };
  const signed = (part: JsonObject) => {
    if (signature === undefined) return part;
    const thoughtSignature = signature;
    signature = undefined;
    return { ...part, thoughtSignature };
  };

  const take = (step: NeutralEvent) => {
    switch (step.type) {
      case 'start':
        about = head(step, request.model);
        return;
      case 'text':
      case 'refusal':
        return send(signed({ text: step.text }));
      case 'reasoning':
        return send({ text: step.text, thought: true });
      case 'signature':
        if (step.redacted) losses.record('answer.redacted', 'reasoning');
        else signature = step.signature;
        return;
      case 'call':
        call = { id: step.id, name: step.name };
        return;
      case 'arguments':
        return whole.add(step.text);
      case 'callEnd':
        return send(signed(partOf({ type: 'call', ...call, arguments: whole.take() }, losses)));
      case 'end':
        return send(
          signed({ text: '' }),
          { finishReason: finishReasons[step.stop] },
          { usageMetadata: writtenUsage(step.usage) },
        );
      case 'failure':
        // Not every client looks for errors in a stream, so it also breaks off.
        emit({ event: undefined, data: errorBody(step.overloaded ? 503 : 500, step.message) });
        throw new UnreadableAnswer(step.message);
    }
  };
  return { take, held: () => whole.held };
};
