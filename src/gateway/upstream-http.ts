import { pipeline, type Transform } from 'node:stream';
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
} from 'node:zlib';
import type { Dispatcher } from 'undici';
import { modelAnswers } from '../bounds/model.ts';
import type { HttpModel, Wire } from '../suite/model-config.ts';
import type { Upstream, UpstreamAnswer } from './answer.ts';
import { dispatched } from './dispatched.ts';
import { toSandbox } from './end-to-end-headers.ts';
import { type Redaction, UpstreamFailure } from './upstream-failure.ts';
import { wireTable } from './wires/wire-table.ts';

interface HttpUpstreamParts {
  dispatcher: Dispatcher;
  config: HttpModel;
  key: string | undefined;
  redaction: Redaction;
}

/**
 * A model reached over HTTP. Follows no redirects, and its only time limit is `headersTimeout`. Rejects with
 * an {@link UpstreamFailure} if no answer began.
 */
export function httpUpstream({ dispatcher, config, key, redaction }: HttpUpstreamParts): Upstream {
  const base = new URL(config.baseUrl);
  const { origin } = base;
  const own = Object.fromEntries(
    Object.entries(config.headers).map(([name, value]) => [name.toLowerCase(), value]),
  );
  const failure = (error: unknown) => new UpstreamFailure(origin, error, redaction);
  return {
    async send(request, signal) {
      signal.throwIfAborted();
      const options = {
        origin,
        path: pathBelow(base, request.path, config.query),
        method: request.method as Dispatcher.HttpMethod,
        headers: {
          ...request.headers,
          // The gateway reads the bytes and passes them on unchanged, so they must not be compressed.
          'accept-encoding': 'identity',
          ...own,
          ...credential(config, request.wire, key),
        },
        body: request.body.length > 0 ? request.body : null,
        // 0 means no limit; undici's default is 300 s.
        headersTimeout: config.headersTimeout ?? 0,
        bodyTimeout: 0,
      };
      const answer = await dispatched(dispatcher, options, signal, failure);
      const { 'content-encoding': encoding, ...headers } = toSandbox(answer.headers);
      const body = decoded(answer.body, encoding, failure, signal);
      const decoderBytes = body === answer.body ? 0 : modelAnswers.bytes.decoderWindow;
      return { status: answer.status, headers: withoutKey(headers, redaction), body, decoderBytes };
    },
  };
}

/** Some servers compress although the request forbids it. What is no compression, clients read as it is. */
function decoded(
  body: AsyncIterable<Uint8Array>,
  encoding: string | string[] | undefined,
  failure: (error: unknown) => Error,
  signal: AbortSignal,
): AsyncIterable<Uint8Array> {
  const names = String(encoding ?? '').toLowerCase();
  const [decoder, ...more] = names.split(',').flatMap((name) => decoders[name.trim()] ?? []);
  if (!decoder) return body;
  if (more.length > 0) throw failure(new Error('its answer is compressed more than once'));
  return readable(body, decoder, failure, signal);
}

/** Some servers never end a compressed stream, so what has arrived counts. */
const flush = { flush: constants.Z_SYNC_FLUSH, finishFlush: constants.Z_SYNC_FLUSH };

/** @param first the first byte of the body */
type Decoder = (first: number) => Transform;

const decoders: Record<string, Decoder> = {
  gzip: () => createGunzip(flush),
  'x-gzip': () => createGunzip(flush),
  // Some servers send it without its header, and clients read both.
  deflate: (first) => ((first & 0x0f) === 8 ? createInflate(flush) : createInflateRaw(flush)),
  br: () =>
    createBrotliDecompress({
      flush: constants.BROTLI_OPERATION_FLUSH,
      finishFlush: constants.BROTLI_OPERATION_FLUSH,
    }),
  zstd: () =>
    createZstdDecompress({
      params: { [constants.ZSTD_d_windowLogMax]: Math.log2(modelAnswers.bytes.decoderWindow) },
    }),
};

/** Drops a header whose name contains the key: a name cannot be redacted. */
function withoutKey(headers: UpstreamAnswer['headers'], redaction: Redaction): UpstreamAnswer['headers'] {
  const text = (value: string) => redaction.text(value);
  const clean = ([name, value]: [string, string | string[]]) => [
    name,
    Array.isArray(value) ? value.map(text) : text(value),
  ];
  const kept = Object.entries(headers).filter(([name]) => !redaction.isIn(name));
  return Object.fromEntries(kept.map(clean));
}

/** Decodes a body. Replaces the decoder's errors, which quote bytes of the answer. */
async function* readable(
  body: AsyncIterable<Uint8Array>,
  decoder: Decoder,
  failure: (error: unknown) => Error,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  try {
    const { read, whole } = await beginningOf(body, 'first');
    const [first] = read;
    if (first === undefined) return;
    // An error of the body also reaches the decoder.
    yield* pipeline(whole(), decoder(first), () => undefined);
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof UpstreamFailure ? error : failure(error);
  }
}

/** Configured query parameters replace the client's. */
function pathBelow(base: URL, path: string, query: Record<string, string>): string {
  const root = base.pathname.replace(/\/+$/, '');
  const configured = Object.entries(query);
  if (configured.length === 0) return `${root}${path}`;
  const [below = '', ...rest] = path.split('?');
  const parameters = new URLSearchParams(rest.join('?'));
  for (const [name, value] of configured) parameters.set(name, value);
  return `${root}${below}?${parameters}`;
}

function credential({ auth }: HttpModel, wire: Wire, key: string | undefined) {
  if (key === undefined) return {};
  const header = auth ?? wireTable[wire].auth;
  return header === 'bearer' ? { authorization: `Bearer ${key}` } : { [header]: key };
}

/**
 * Reads the first bytes of a body: as many as an error may have, or the first piece. `whole` still gives the
 * complete body.
 */
export async function beginningOf(source: AsyncIterable<Uint8Array>, most: 'judged' | 'first' = 'judged') {
  const iterator = source[Symbol.asyncIterator]();
  const chunks: Uint8Array[] = [];
  let size = 0;
  let ended = false;
  while (!ended && size < (most === 'first' ? 1 : modelAnswers.bytes.judgedError)) {
    const { done, value } = await iterator.next();
    if (done) ended = true;
    else {
      chunks.push(value);
      size += value.length;
    }
  }
  const [only, ...more] = chunks;
  const read = only instanceof Buffer && more.length === 0 ? only : Buffer.concat(chunks);
  const discard = async () => void (await iterator.return?.());
  // A generator would take several turns for each piece.
  const rest: AsyncIterator<Uint8Array, void> = {
    next() {
      const value = chunks.shift();
      return value ? Promise.resolve({ done: false, value }) : iterator.next();
    },
    return: async () => ({ done: true, value: await discard() }),
  };
  return { read, whole: () => ({ [Symbol.asyncIterator]: () => rest }), discard };
}
