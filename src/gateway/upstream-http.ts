import { pipeline, type Readable, type Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib';
import type { Dispatcher } from 'undici';
import type { HttpModel } from '../suite/model-config.ts';
import { toSandbox } from './end-to-end-headers.ts';
import type { Redaction } from './redaction.ts';
import type { Upstream, UpstreamAnswer } from './upstream.ts';
import { UpstreamFailure } from './upstream-failure.ts';

interface HttpUpstreamParts {
  dispatcher: Dispatcher;
  config: HttpModel;
  key: string | undefined;
  redaction: Redaction;
}

/**
 * A model reached over HTTP. Follows no redirect, and has no time limit of its own but `headersTimeout`. Rejects with an
 * {@link UpstreamFailure} where no answer began.
 */
export function httpUpstream({ dispatcher, config, key, redaction }: HttpUpstreamParts): Upstream {
  const base = new URL(config.baseUrl);
  const own = Object.fromEntries(
    Object.entries(config.headers).map(([name, value]) => [name.toLowerCase(), value]),
  );
  return {
    async send(request, signal) {
      signal.throwIfAborted();
      let answer: Dispatcher.ResponseData;
      try {
        answer = await dispatcher.request({
          origin: base.origin,
          path: pathBelow(base, request.path, config.query),
          method: request.method as Dispatcher.HttpMethod,
          headers: {
            ...request.headers,
            // Bytes pass unchanged and are read on the way, so they must not be compressed.
            'accept-encoding': 'identity',
            ...own,
            ...credential(config, request.wire, key),
          },
          body: request.body.length > 0 ? request.body : null,
          signal,
          // 0 stands for no limit; undici's own is 300 s.
          headersTimeout: config.headersTimeout ?? 0,
          bodyTimeout: 0,
        });
      } catch (error) {
        signal.throwIfAborted();
        throw new UpstreamFailure(base.origin, error, redaction);
      }
      // Whoever reads the body learns of what breaks it; where nobody does any more, it must not end the process.
      answer.body.on('error', () => undefined);
      const { 'content-encoding': encoding, ...headers } = toSandbox(answer.headers);
      const body = decoded(answer.body, encoding);
      if (body) {
        return {
          status: answer.statusCode,
          headers: withoutKey(headers, redaction),
          body: readable(body, base.origin, redaction, signal),
        };
      }
      answer.body.destroy();
      throw new UpstreamFailure(
        base.origin,
        new Error('its answer is in an encoding nobody asked for'),
        redaction,
      );
    },
  };
}

/** Some servers compress though they were asked not to. Undefined for an encoding that cannot be read. */
function decoded(body: Readable, encoding: string | string[] | undefined): Readable | undefined {
  if (encoding === undefined || encoding === 'identity') return body;
  const decoder = decoders[String(encoding)]?.();
  // Its failures reach the decoder, which is what is read.
  return decoder && pipeline(body, decoder, () => undefined);
}

const decoders: Record<string, () => Transform> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
};

function withoutKey(headers: UpstreamAnswer['headers'], { text }: Redaction): UpstreamAnswer['headers'] {
  const clean = ([name, value]: [string, string | string[]]) => [
    name,
    Array.isArray(value) ? value.map(text) : text(value),
  ];
  return Object.fromEntries(Object.entries(headers).map(clean));
}

/** The answer's bytes; what breaks them is told without what undici knows of it, which may hold the answer's own bytes. */
async function* readable(
  body: AsyncIterable<Uint8Array>,
  origin: string,
  redaction: Redaction,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } catch (error) {
    signal.throwIfAborted();
    throw new UpstreamFailure(origin, error, redaction);
  }
}

/** Configured parameters stand over those of the client. */
function pathBelow(base: URL, path: string, query: Record<string, string>): string {
  const [below = '', ...rest] = path.split('?');
  const parameters = new URLSearchParams(rest.join('?'));
  for (const [name, value] of Object.entries(query)) parameters.set(name, value);
  const search = Object.keys(query).length > 0 ? parameters.toString() : rest.join('?');
  return `${base.pathname.replace(/\/+$/, '')}${below}${search && `?${search}`}`;
}

function credential({ auth, wire: wires }: HttpModel, wire: string, key: string | undefined) {
  if (key === undefined) return {};
  const usual = wire === 'anthropic-messages' && wires.includes(wire) ? 'x-api-key' : 'bearer';
  const header = auth ?? usual;
  return header === 'bearer' ? { authorization: `Bearer ${key}` } : { [header]: key };
}
