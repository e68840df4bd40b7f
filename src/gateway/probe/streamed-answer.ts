import { ByteStore } from '../../base/byte-store.ts';
import { OffsiteError } from '../../base/offsite-error.ts';
import { chatAnswers } from '../../bounds/model.ts';
import type { Wire } from '../../suite/model-config.ts';
import type { UpstreamAnswer } from '../answer.ts';
import { writeChat } from '../chat/chat-over.ts';
import { refusedBy } from '../chat/model-errors.ts';
import { answerStream } from '../translation/answer-stream.ts';
import { Losses } from '../translation/losses.ts';
import type { NeutralEvent, NeutralUsage } from '../translation/neutral-answer.ts';
import { callIds } from '../translation/stream-steps.ts';
import { wireTable } from '../wires/wire-table.ts';
import { type DirectModel, noteUsage } from './direct-model.ts';

/** How an answer streamed. Times are milliseconds since the request was sent. */
export interface StreamedAnswer {
  /** The first piece of text, of reasoning or of a call. Undefined if there was none. */
  firstTokenMs: number | undefined;
  lastTokenMs: number | undefined;
  totalMs: number;
  /** How many times pieces arrived. Pieces that arrived together count once. */
  arrivals: number;
  inputTokens: number | undefined;
  outputTokens: number;
  /** Set if the answer did not report its tokens: then a piece counts as one. */
  estimated?: true;
}

/**
 * Asks for a streamed answer, without retries. Throws a `ModelRefused`, `MODEL_UNREACHABLE`,
 * `MODEL_TOO_SLOW` or `MODEL_ANSWER_UNREADABLE`.
 *
 * @param limits.within milliseconds for the whole answer
 */
export function streamedAnswer(
  model: DirectModel,
  wire: Wire,
  asked: { prompt: string; maxTokens: number },
  { within, signal }: { within: number; signal: AbortSignal },
): Promise<StreamedAnswer> {
  return askWithin((asking) => streamed(model, wire, asked, asking), { name: model.name, within, signal });
}

/** Throws `MODEL_TOO_SLOW` if an answer does not come in time. */
export async function askWithin<Answer>(
  ask: (asking: AbortSignal) => Promise<Answer>,
  { name, within, signal }: { name: string; within: number; signal: AbortSignal },
): Promise<Answer> {
  const deadline = AbortSignal.timeout(within);
  try {
    return await ask(AbortSignal.any([signal, deadline]));
  } catch (error) {
    if (error !== deadline.reason) throw error;
    throw new OffsiteError(`the model ${name} did not answer within ${within / 1000} s`, {
      code: 'MODEL_TOO_SLOW',
      kind: 'infrastructure',
      hint: 'A server may be loading it: try again, or give it longer with --timeout.',
    });
  }
}

async function streamed(
  { name, upstream, upstreamName, used }: DirectModel,
  wire: Wire,
  { prompt, maxTokens }: { prompt: string; maxTokens: number },
  signal: AbortSignal,
): Promise<StreamedAnswer> {
  const { translation, headers } = wireTable[wire];
  const chat = { messages: [{ from: 'user' as const, text: prompt }], maxTokens };
  const startedAt = performance.now();
  const answer = await upstream.send(
    {
      wire,
      method: 'POST',
      path: translation.path(upstreamName, true),
      headers: { 'content-type': 'application/json', accept: 'text/event-stream', ...headers },
      body: Buffer.from(JSON.stringify(writeChat(wireTable[wire], upstreamName, chat, { streamed: true }))),
    },
    signal,
  );
  if (answer.status < 200 || answer.status > 299)
    throw refusedBy({ model: name }, answer, await wholeOf(answer));
  const read = await readStream(answer, wire, startedAt);
  noteUsage(used, {
    ...(read.inputTokens !== undefined && { inputTokens: read.inputTokens }),
    ...(!read.estimated && { outputTokens: read.outputTokens }),
  });
  return read;
}

async function readStream(answer: UpstreamAnswer, wire: Wire, startedAt: number): Promise<StreamedAnswer> {
  let firstTokenMs: number | undefined;
  let lastTokenMs: number | undefined;
  let arrivals = 0;
  let pieces = 0;
  let usage: NeutralUsage = {};
  await readEvents(answer, wire, (event) => {
    if (event.type === 'end') usage = event.usage;
    else if (event.type === 'text' || event.type === 'reasoning' || event.type === 'arguments') {
      const at = performance.now() - startedAt;
      pieces += 1;
      if (lastTokenMs === undefined || at - lastTokenMs > togetherMs) arrivals += 1;
      firstTokenMs ??= at;
      lastTokenMs = at;
    }
  });
  return {
    firstTokenMs,
    lastTokenMs,
    arrivals,
    totalMs: performance.now() - startedAt,
    inputTokens: usage.input,
    outputTokens: usage.output ?? pieces,
    ...(usage.output === undefined && { estimated: true }),
  };
}

/**
 * Reads a stream of a wire to its end. Throws `MODEL_ANSWER_UNREADABLE` if it is none, breaks off or carries
 * an error.
 *
 * @param used the ids of the calls of the conversation that it continues
 */
export async function readEvents(
  answer: Pick<UpstreamAnswer, 'headers' | 'body'>,
  wire: Wire,
  onEvent: (event: NeutralEvent) => void,
  used: readonly string[] = [],
): Promise<void> {
  const type = String(answer.headers['content-type'] ?? 'no type');
  let failed: string | undefined;
  const stream = answerStream(wireTable[wire].translation, {
    ids: callIds(used),
    losses: new Losses('lenient', wire),
    longest: chatAnswers.bytes.answer,
    emit(event) {
      if (event.type === 'failure') failed ??= event.message;
      else onEvent(event);
    },
  });
  const decoder = new TextDecoder();
  let size = 0;
  for await (const chunk of answer.body) {
    size += chunk.length;
    if (size > chatAnswers.bytes.answer) failed ??= `it has more than ${chatAnswers.bytes.answer} bytes`;
    if (failed !== undefined || stream.problem()) break;
    stream.feed(decoder.decode(chunk, { stream: true }));
  }
  if (failed === undefined) stream.end();
  failed ??= stream.problem()?.message;
  if (failed !== undefined && stream.events() === 0)
    throw unreadable(`the answer is not a stream, but ${type}: ${failed}`);
  if (failed !== undefined) throw unreadable(`the stream broke: ${failed}`);
}

/** Pieces within the given milliseconds arrived together. */
const togetherMs = 1;

/** The beginning of a body, enough of it for an error. */
export async function wholeOf({ body }: Pick<UpstreamAnswer, 'body'>): Promise<Buffer> {
  const store = new ByteStore();
  for await (const chunk of body) {
    if (store.size + chunk.length > chatAnswers.bytes.answer) break;
    store.add(chunk);
  }
  return store.take();
}

function unreadable(message: string): OffsiteError {
  return new OffsiteError(message, { code: 'MODEL_ANSWER_UNREADABLE', kind: 'infrastructure' });
}
