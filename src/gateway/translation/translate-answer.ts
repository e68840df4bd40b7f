import { modelAnswers } from '../../bounds/model.ts';
import { ByteStore } from '../../byte-store.ts';
import { errorIn } from '../chat/model-errors.ts';
import type { UpstreamAnswer } from '../upstream.ts';
import { parsed } from '../wires/lenient.ts';
import { wireTable } from '../wires/wire-table.ts';
import { callIds } from './call-ids.ts';
import { eventsOf } from './neutral-answer.ts';
import type { Transcoder } from './transcoder.ts';
import type { TranslatedRequest } from './translate-request.ts';
import { bytesOfEvent, streamTranscoder } from './translate-stream.ts';
import { UnreadableAnswer } from './unreadable-answer.ts';
import { isBlank, wholeAnswer } from './whole-answer.ts';
import type { Asked } from './wire-translation.ts';

export interface TranslatedAnswer {
  status: number;
  headers: UpstreamAnswer['headers'];
  /** Whether the client gets its answer in one piece. */
  whole: boolean;
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
  const ids = callIds(request.messages);
  const client = wireTable[from].translation;
  const model = wireTable[to].translation;
  const kept = keptHeaders(headers);
  const json = { ...kept, 'content-type': 'application/json' };
  const inOnePiece = (status: number, convert: (body: string) => object): TranslatedAnswer => ({
    ...{ status, headers: json, whole: true },
    transcoder: wholeTranscoder((body) => JSON.stringify(convert(body))),
  });

  if (purpose === 'count' && countless.has(status)) {
    translated.estimated = true;
    return { ...inOnePiece(200, () => countAnswer(translated)), headers: { ...json, ...estimateHeader } };
  }
  if (status >= 400) return inOnePiece(status, (body) => errorFor(translated, status, body));
  if (purpose === 'count') {
    return inOnePiece(status, (body) => {
      const tokens = model.count?.read(parsed(body));
      if (tokens === undefined) throw new UnreadableAnswer(`the answer is not a token count of ${to}`);
      return countAnswer(translated, tokens);
    });
  }
  const read = (body: string) => {
    try {
      return wholeAnswer(model, body, ids, losses);
    } catch (error) {
      const { message = 'nothing' } = errorIn(to, body);
      if (!(error instanceof UnreadableAnswer) || error.message.includes(message)) throw error;
      throw new UnreadableAnswer(`${error.message}: ${message}`);
    }
  };
  if (!request.streamed) return inOnePiece(status, (body) => client.writeAnswer(read(body), asked));
  const isStream = String(headers['content-type'] ?? '').startsWith('text/event-stream');
  // Some servers answer in one piece, or under another type, whatever was asked for. That is read first, so
  // that what is no answer of a model becomes an error with its words, not a stream that breaks off.
  const document = () =>
    wholeTranscoder((body) => {
      const out: string[] = [];
      const writer = client.writeStream(asked, (event) => out.push(bytesOfEvent(event)));
      for (const event of eventsOf(read(body))) writer.take(event);
      return out.join('');
    });
  const events = () => streamTranscoder(model, client, asked, ids);
  return {
    ...{ status, headers: { ...kept, 'content-type': 'text/event-stream' }, whole: !isStream },
    transcoder: isStream ? transcoderByContent(events, document) : document(),
  };
}

/** Chooses by the beginning of the answer, because servers send documents under the type of a stream. */
function transcoderByContent(events: () => Transcoder, document: () => Transcoder): Transcoder {
  let beginning = Buffer.alloc(0);
  let chosen: Transcoder | undefined;
  const choose = () => {
    chosen = /^[\s\uFEFF]*[{[]/.test(beginning.toString('utf8')) ? document() : events();
    return chosen;
  };
  return {
    push(bytes) {
      if (chosen) return chosen.push(bytes);
      beginning = Buffer.concat([beginning, bytes]);
      if (beginning.length < modelAnswers.bytes.blanks && isBlank(beginning.toString('utf8')))
        return Buffer.alloc(0);
      return choose().push(beginning);
    },
    end() {
      if (chosen) return chosen.end();
      const last = choose();
      return Buffer.concat([last.push(beginning), last.end()]);
    },
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
function errorFor({ from, to }: TranslatedRequest, status: number, body: string): object {
  const { message, codes } = errorIn(to, body);
  const [code = 'model_failed'] = codes;
  return wireTable[from].errorBody(status, code, message ?? `the model answered ${status}`);
}

/** Headers that mean the same on every wire. */
function keptHeaders(headers: UpstreamAnswer['headers']): UpstreamAnswer['headers'] {
  const names = ['retry-after', 'retry-after-ms', 'x-should-retry', 'x-request-id', 'request-id', 'date'];
  return Object.fromEntries(Object.entries(headers).filter(([name]) => names.includes(name)));
}

function wholeTranscoder(convert: (body: string) => string): Transcoder {
  const store = new ByteStore();
  return {
    push(bytes) {
      if (store.size + bytes.length > modelAnswers.bytes.translated)
        throw new UnreadableAnswer(`the answer is larger than ${modelAnswers.bytes.translated} bytes`);
      store.add(bytes);
      return Buffer.alloc(0);
    },
    end() {
      const body = utf8(store.take());
      return Buffer.from(convert(body));
    },
    held: () => store.size,
  };
}

function utf8(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new UnreadableAnswer('the answer is not UTF-8');
  }
}
