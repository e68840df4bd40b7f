import { ByteStore } from '../../base/byte-store.ts';
import { messageOf } from '../../base/offsite-error.ts';
import { heapLimit } from '../../base/parse-json.ts';
import { modelAnswers } from '../../bounds/model.ts';
import type { Wire } from '../../suite/model-config.ts';
import { singleChunk, type UpstreamAnswer } from '../answer.ts';
import type { ModelExchange } from '../gateway.ts';
import { estimateTokens } from '../scripted/turns.ts';
import type { ServedModel } from '../served-model.ts';
import { type JsonObject, parsed, partsOfEvent, textOfEvent } from '../wires/lenient.ts';
import { readErrorText } from '../wires/model-error.ts';
import type { Asked, WireTranslation } from '../wires/wire-descriptor.ts';
import { wireTable } from '../wires/wire-table.ts';
import {
  answerStream,
  isBlank,
  isDocument,
  isEvents,
  type Transcoder,
  wholeAnswer,
} from './answer-stream.ts';
import { Losses } from './losses.ts';
import { eventsOf, failedAnswer, type NeutralEvent, UnreadableAnswer } from './neutral-answer.ts';
import type { NeutralRequest } from './neutral-request.ts';
import { decoderOf } from './read-answers.ts';
import { type CallIds, callIds, idsIn } from './stream-steps.ts';

export interface TranslatedAnswer {
  status: number;
  headers: UpstreamAnswer['headers'];
  /** Whether the head waits for the first bytes, so that what cannot be read becomes an error. */
  headWaits: boolean;
  transcoder: Transcoder;
}

/** How an answer that begins like this is sent to the client. `at`: epoch milliseconds. */
export function translateAnswer(
  { status, headers }: Pick<UpstreamAnswer, 'status' | 'headers'>,
  translated: TranslatedRequest,
  purpose: 'answer' | 'count',
  at: number,
): TranslatedAnswer {
  const { from, to, request, losses } = translated;
  const asked: Asked = { request, at, losses };
  const ids = callIds(idsIn(request.messages));
  const client = wireTable[from].translation;
  const model = wireTable[to];
  const kept = keptHeaders(headers);
  const json = { ...kept, 'content-type': 'application/json' };
  const inOnePiece = (status: number, convert: (body: string) => object): TranslatedAnswer => ({
    status,
    headers: json,
    headWaits: true,
    transcoder: wholeTranscoder(losses, (body) => JSON.stringify(convert(body))),
  });

  if (purpose === 'count' && countless.has(status)) {
    translated.estimated = true;
    const estimated = inOnePiece(200, () => countAnswer(from, translated.estimate));
    return { ...estimated, headers: { ...json, ...estimateHeader } };
  }
  if (status >= 400) return inOnePiece(status, (body) => errorFor(translated, status, body));
  if (purpose === 'count') {
    return inOnePiece(status, (body) => {
      const tokens = model.translation.count?.read(parsed(body));
      if (tokens === undefined) throw new UnreadableAnswer(`the answer is not a token count of ${to}`);
      return countAnswer(from, tokens);
    });
  }
  const read = (body: string) => wholeAnswer(model, body, ids, losses);
  if (!request.streamed) return inOnePiece(status, (body) => client.writeAnswer(read(body), asked));
  const isStream = String(headers['content-type'] ?? '').startsWith('text/event-stream');
  const write = (events: Iterable<NeutralEvent>, out: string[] = []) => {
    const writer = client.writeStream(asked, (event) => out.push(textOfEvent(event)));
    for (const event of events) writer.take(event);
    return out.join('');
  };
  const failureFor = ({ message }: UnreadableAnswer) => {
    const out: string[] = [];
    try {
      write(failedAnswer(message), out);
    } catch {
      // Some writers break off after an error.
    }
    return out.join('');
  };
  const document = () =>
    wholeTranscoder(
      losses,
      (body) => write(eventsOf(read(body))),
      // The client of a stream may already have its head, so it gets the error as a stream does.
      isStream ? failureFor : undefined,
    );
  const events = () => streamTranscoder(model.translation, client, asked, ids);
  return {
    status,
    headers: { ...kept, 'content-type': 'text/event-stream' },
    headWaits: !isStream,
    transcoder: transcoderByContent((beginning) =>
      isEvents(beginning) || (isStream && !isDocument(beginning)) ? events() : document(),
    ),
  };
}

/** Chooses by the beginning of the answer: servers send streams and documents under any type. */
function transcoderByContent(choose: (beginning: string) => Transcoder): Transcoder {
  let beginning = Buffer.alloc(0);
  let chosen: Transcoder | undefined;
  return {
    push(bytes) {
      if (chosen) return chosen.push(bytes);
      beginning = Buffer.concat([beginning, bytes]);
      const text = beginning.toString('utf8');
      if (beginning.length < modelAnswers.bytes.blanks && isBlank(text)) return [];
      chosen = choose(text);
      return chosen.push(beginning);
    },
    end() {
      if (chosen) return chosen.end();
      chosen = choose(beginning.toString('utf8'));
      return [...chosen.push(beginning), ...chosen.end()];
    },
    problem: () => chosen?.problem(),
    isOver: () => chosen?.isOver?.() ?? false,
    stream: () => chosen?.stream?.(),
    held: () => chosen?.held() ?? beginning.length,
  };
}

/** Statuses of servers that do not count tokens. */
const countless: ReadonlySet<number> = new Set([404, 405, 501]);

/** Marks a count of tokens that is an estimate. */
const estimateHeader = { 'x-offsite-estimated': 'true' };

/** The estimate that answers a count of tokens if the wire of the model has no such endpoint. */
export function estimatedCount(wire: Wire, tokens: number): UpstreamAnswer {
  const body = Buffer.from(JSON.stringify(countAnswer(wire, tokens)));
  const headers = { 'content-type': 'application/json', ...estimateHeader };
  return { status: 200, headers, body: singleChunk(body) };
}

/** The answer of the client's own endpoint that counts tokens. */
function countAnswer(wire: Wire, tokens: number): object {
  const endpoint = wireTable[wire].endpoints.find(({ writeCount }) => writeCount);
  return endpoint?.writeCount?.(tokens) ?? {};
}

/** Keeps the upstream's own message, which says what clients should do, for example to shorten the prompt. */
function errorFor({ from }: TranslatedRequest, status: number, body: string): object {
  const { message, codes } = readErrorText(body);
  const [code = 'model_failed'] = codes;
  return wireTable[from].errorBody(status, code, message ?? `the model answered ${status}`);
}

/** Headers that mean the same on every wire. */
function keptHeaders(headers: UpstreamAnswer['headers']): UpstreamAnswer['headers'] {
  const names = ['retry-after', 'retry-after-ms', 'x-should-retry', 'x-request-id', 'request-id', 'date'];
  return Object.fromEntries(Object.entries(headers).filter(([name]) => names.includes(name)));
}

/** @param tell writes the error for a client whose answer has begun */
function wholeTranscoder(
  losses: Losses,
  convert: (body: string) => string,
  tell?: (error: UnreadableAnswer) => string,
): Transcoder {
  const store = new ByteStore();
  let problem: UnreadableAnswer | undefined;
  return {
    push(bytes) {
      if (store.size + bytes.length > modelAnswers.bytes.translated)
        throw new UnreadableAnswer(`the answer is larger than ${modelAnswers.bytes.translated} bytes`);
      store.add(bytes);
      return [];
    },
    end() {
      try {
        const decode = decoderOf(losses);
        return [Buffer.from(convert(decode(store.take()) + decode()))];
      } catch (error) {
        if (!tell || !(error instanceof UnreadableAnswer)) throw error;
        problem = error;
        return [Buffer.from(tell(error))];
      }
    },
    problem: () => problem,
    held: () => store.size,
  };
}

/** A request in the wire of its model. */
export interface TranslatedRequest {
  /** The wires of the client and of the model. */
  from: Wire;
  to: Wire;
  /** Undefined for a count of tokens that the model's wire cannot ask for. */
  sent: { path: string; body: Buffer } | undefined;
  request: NeutralRequest;
  losses: Losses;
  /** Its tokens, from the size of the translated request. */
  estimate: number;
  /** Whether the client got the estimate. */
  estimated: boolean;
}

/**
 * Translates a request into the first wire of its model. Throws a GatewayRefusal (400) for what that wire
 * cannot carry and the model's configuration does not allow to leave out.
 */
export function translateRequest(
  body: JsonObject,
  from: Wire,
  { model, streamed, purpose }: { model: ServedModel; streamed: boolean; purpose: 'answer' | 'count' },
): TranslatedRequest {
  const [to] = model.wires;
  const { translation } = wireTable[to];
  const losses = new Losses(model.config.translation, model.name);
  const request: NeutralRequest = {
    ...wireTable[from].translation.readRequest(body, losses),
    model: model.name,
    streamed,
  };
  const target = { model: model.upstreamName, maxOutputTokens: model.config.maxOutputTokens };
  const written = translation.writeRequest(request, losses, target);
  const path =
    purpose === 'answer'
      ? translation.path(model.upstreamName, streamed)
      : translation.count?.path(model.upstreamName);
  const document = purpose === 'answer' ? written : translation.count?.write(written, model.upstreamName);
  const bytes = Buffer.from(JSON.stringify(document ?? written));
  const sent = path === undefined ? undefined : { path, body: bytes };
  return { from, to, sent, request, losses, estimate: estimateTokens(bytes.length), estimated: false };
}

/** What the record says about a translation. */
export function exchangeTranslationOf(of: TranslatedRequest): ModelExchange['translation'] {
  return { from: of.from, losses: of.losses.all(), ...(of.estimated && { estimated: true }) };
}

/**
 * Translates a stream event by event: the events in one chunk go to the client before the next chunk is read.
 * If the stream does not end successfully, the client gets an error in its wire, and then a broken answer.
 */
export function streamTranscoder(
  model: WireTranslation,
  client: WireTranslation,
  asked: Asked,
  ids: CallIds,
): Transcoder {
  let out: (string | Buffer)[] = [];
  let failed: UnreadableAnswer | undefined;
  let hasBegun = false;
  let isTold = false;
  const writer = client.writeStream(asked, (event) => out.push(...partsOfEvent(event)));
  /**
   * Pieces of one text that have arrived together. A client that waits for each piece gets each; one that has
   * fallen behind gets the same text in fewer events.
   */
  let joined: Extract<NeutralEvent, { text: string }> | undefined;
  const flush = () => {
    const event = joined;
    joined = undefined;
    if (event) writer.take(event);
  };
  const take = (event: NeutralEvent) => {
    if ('text' in event && joined?.type === event.type) {
      joined.text += event.text;
      return;
    }
    flush();
    if ('text' in event) joined = { ...event };
    else writer.take(event);
  };
  const stream = answerStream(model, {
    ids,
    losses: asked.losses,
    longest: Math.min(modelAnswers.bytes.translated, heapLimit * modelAnswers.bytes.eventOfHeap),
    emit(event) {
      // After a failure the stream is read for what else it says about itself, but no more is told.
      if ((failed ?? stream.problem()) === undefined) tell(event);
    },
    readsOn: true,
  });
  const attempt = (step: () => void) => {
    try {
      step();
    } catch (error) {
      failed ??= error instanceof UnreadableAnswer ? error : new UnreadableAnswer(messageOf(error));
    }
  };
  const tell = (event: NeutralEvent) => {
    hasBegun ||= event.type === 'start';
    isTold ||= event.type === 'end' || event.type === 'failure';
    attempt(() => take(event));
  };
  /** What the client gets: first what came before a failure, then its words. */
  const takeWritten = () => {
    attempt(flush);
    failed ??= stream.problem();
    // The steps may have ended since the failure, so what the client was told decides.
    if (failed && !isTold) {
      if (!hasBegun) tell({ type: 'start', id: undefined, model: undefined });
      tell({ type: 'failure', message: failed.message, code: undefined, overloaded: false });
    }
    const written = out;
    out = [];
    return bytesOf(written);
  };
  const decode = decoderOf(asked.losses);
  return {
    push(bytes) {
      stream.feed(decode(bytes));
      return takeWritten();
    },
    end() {
      stream.feed(decode());
      stream.end();
      return takeWritten();
    },
    problem: () => failed,
    isOver: () => stream.steps.over && !failed,
    stream: () => stream,
    held: () => stream.held() + writer.held(),
  };
}

/** Texts that follow each other are joined; bytes stay as they are. */
function bytesOf(written: readonly (string | Buffer)[]): Buffer[] {
  const all: Buffer[] = [];
  let from = 0;
  for (let at = 0; at <= written.length; at += 1) {
    const part = written[at];
    if (typeof part === 'string') continue;
    if (at > from) all.push(Buffer.from(written.slice(from, at).join('')));
    if (part) all.push(part);
    from = at + 1;
  }
  return all;
}
