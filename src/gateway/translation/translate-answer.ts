import { ByteStore } from '../../base/byte-store.ts';
import { modelAnswers } from '../../bounds/model.ts';
import { isBlank, isDocument, isEvents } from '../event-feed.ts';
import type { UpstreamAnswer } from '../upstream.ts';
import { parsed } from '../wires/lenient.ts';
import { readErrorText } from '../wires/model-error.ts';
import { textOfEvent } from '../wires/wire-event.ts';
import { wireTable } from '../wires/wire-table.ts';
import { callIds, idsIn } from './call-ids.ts';
import type { Losses } from './losses.ts';
import { eventsOf, failedAnswer, type NeutralEvent } from './neutral-answer.ts';
import { decoderOf } from './read-answers.ts';
import type { Transcoder } from './transcoder.ts';
import type { TranslatedRequest } from './translate-request.ts';
import { streamTranscoder } from './translate-stream.ts';
import { UnreadableAnswer } from './unreadable-answer.ts';
import { wholeAnswer } from './whole-answer.ts';
import type { Asked } from './wire-translation.ts';

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
    return { ...inOnePiece(200, () => countAnswer(translated)), headers: { ...json, ...estimateHeader } };
  }
  if (status >= 400) return inOnePiece(status, (body) => errorFor(translated, status, body));
  if (purpose === 'count') {
    return inOnePiece(status, (body) => {
      const tokens = model.translation.count?.read(parsed(body));
      if (tokens === undefined) throw new UnreadableAnswer(`the answer is not a token count of ${to}`);
      return countAnswer(translated, tokens);
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
export function estimatedCount(translated: TranslatedRequest): UpstreamAnswer {
  translated.estimated = true;
  const body = Buffer.from(JSON.stringify(countAnswer(translated)));
  const headers = { 'content-type': 'application/json', ...estimateHeader };
  return { status: 200, headers, body: one(body) };
}

async function* one(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield bytes;
}

/** The answer of the client's own endpoint that counts tokens. */
function countAnswer({ from, estimate }: TranslatedRequest, tokens = estimate): object {
  const endpoint = wireTable[from].endpoints.find(({ writeCount }) => writeCount);
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
