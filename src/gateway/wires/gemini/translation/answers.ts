import { eventReader } from '../../../translation/event-objects.ts';
import type { Losses } from '../../../translation/losses.ts';
import {
  type NeutralAnswer,
  type NeutralEvent,
  type NeutralStop,
  type NeutralUsage,
  UnreadableAnswer,
} from '../../../translation/neutral-answer.ts';
import type { ModelPart } from '../../../translation/neutral-request.ts';
import { incomplete, isDone, NoAnswer, type Stops, stopOf } from '../../../translation/read-answers.ts';
import { WholeText } from '../../../translation/whole-text.ts';
import type { WireTranslation } from '../../../translation/wire-translation.ts';
import {
  eventsAround,
  isNothing,
  isObject,
  type JsonObject,
  member,
  object,
  objectsOf,
  stringIn,
  tokens,
} from '../../lenient.ts';
import { readError, readErrorBody } from '../../model-error.ts';
import { argumentsObject, fields } from '../../openai.ts';

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

const Usage = object({
  promptTokenCount: tokens,
  candidatesTokenCount: tokens,
  thoughtsTokenCount: tokens,
  cachedContentTokenCount: tokens,
});

/** The wire counts thoughts apart from the rest of the output. */
function countsOf(usage: unknown): NeutralUsage {
  const all = Usage.parse(usage);
  const { promptTokenCount: input, candidatesTokenCount: said, thoughtsTokenCount: reasoning } = all;
  // An answer without text has no count of it.
  const output =
    said === undefined && reasoning === undefined && input === undefined
      ? undefined
      : (said ?? 0) + (reasoning ?? 0);
  return fields({ input, output, cacheRead: all.cachedContentTokenCount, reasoning });
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

/**
 * On this wire a signature is on the part that follows the thought. In the neutral form it belongs to a part
 * of reasoning, which has no text if the model did not show its thought.
 */
export function withSignature(
  read: ModelPart[],
  content: ModelPart,
  signature: string | undefined,
): ModelPart[] {
  const isThought = content.type === 'reasoning';
  if (isThought) read.push(signature ? { ...content, signature } : content);
  else {
    const last = read.at(-1);
    if (signature && last?.type === 'reasoning' && last.signature === undefined) last.signature = signature;
    else if (signature) read.push({ type: 'reasoning', text: '', signature });
    if (content.type !== 'text' || content.text !== '') read.push(content);
  }
  return read;
}

/** The parts of this wire. A signature goes to the next part that is no thought. */
export function signedParts(
  parts: readonly ModelPart[],
  write: (part: Exclude<ModelPart, { type: 'reasoning' }>) => JsonObject,
): JsonObject[] {
  const written: JsonObject[] = [];
  let signature: string | undefined;
  for (const [index, part] of parts.entries()) {
    if (part.type !== 'reasoning') {
      written.push({ ...write(part), ...(signature !== undefined && { thoughtSignature: signature }) });
      signature = undefined;
      continue;
    }
    const next = parts[index + 1];
    const follows = next !== undefined && next.type !== 'reasoning';
    if (part.text !== '')
      written.push({
        text: part.text,
        thought: true,
        ...(!follows && part.signature && { thoughtSignature: part.signature }),
      });
    else if (!follows && part.signature) written.push({ text: '', thoughtSignature: part.signature });
    signature = follows ? part.signature : undefined;
  }
  return written;
}

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
  let said: { isThought: boolean; data: (text: string) => string } | undefined;
  const chunk = (part: JsonObject, more: JsonObject = {}, usage: JsonObject = {}) => ({
    candidates: [{ content: { parts: [part], role: 'model' }, ...more, index: 0 }],
    ...about,
    ...usage,
  });
  const send = (...of: Parameters<typeof chunk>) => emit({ event: undefined, data: chunk(...of) });
  const text = (text: string, isThought: boolean) => {
    if (said?.isThought !== isThought) {
      const thought = isThought ? { thought: true } : {};
      said = { isThought, data: eventsAround((place) => chunk({ text: place, ...thought })) };
    }
    emit({ event: undefined, data: said.data(text) });
  };
  const signed = (part: JsonObject) => {
    const all = { ...part, ...(signature !== undefined && { thoughtSignature: signature }) };
    signature = undefined;
    return all;
  };

  const take = (step: NeutralEvent) => {
    switch (step.type) {
      case 'start':
        about = head(step, request.model);
        return;
      case 'text':
      case 'refusal':
        return signature === undefined ? text(step.text, false) : send(signed({ text: step.text }));
      case 'reasoning':
        return text(step.text, true);
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
