import { Readable } from 'node:stream';
import { ByteStore } from '../base/byte-store.ts';
import { messageOf } from '../base/offsite-error.ts';
import { serviceAnswers } from '../bounds/service.ts';
import type { Exchange, ExchangeOptions, Transport } from '../client/exchange.ts';
import type { ServiceAnswer, ServiceRequest } from '../service/request/service-request.ts';
import type { Service } from '../service/service.ts';

/**
 * Calls a service of this process. It gets, checks and answers the same requests as over HTTP. A request that
 * is aborted is still worked on.
 */
export function transportTo(service: Pick<Service, 'answer'>): Transport {
  return {
    origin: 'the embedded service',
    exchange({ origin, path, method = 'POST', headers, body = '' }, options) {
      const { signal } = options;
      if (signal.aborted) return Promise.resolve({ _tag: 'stopped', sent: false });
      const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : undefined;
      const named = new Map(Object.entries(headers));
      if (bytes) named.set('content-length', String(bytes.length));
      const request: ServiceRequest = {
        method,
        url: origin + path,
        headers: { get: (name) => named.get(name) ?? null },
        signal,
        body: typeof body === 'string' ? null : (Readable.toWeb(body) as ReadableStream<Uint8Array>),
        arrayBuffer: async () => bytes?.buffer ?? new ArrayBuffer(),
      };
      const { promise, resolve } = Promise.withResolvers<Exchange>();
      const stop = () => resolve({ _tag: 'stopped', sent: true });
      signal.addEventListener('abort', stop, { once: true });
      service
        .answer(request)
        .then((answer) => collected(answer, options))
        // An answer that is sent while it is built can break.
        .catch((error) => ({ _tag: 'broken' as const, sent: true, error: new Error(messageOf(error)) }))
        .then((exchanged) => {
          signal.removeEventListener('abort', stop);
          if (typeof body !== 'string') body.destroy();
          resolve(exchanged);
        });
      return promise;
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

async function collected(
  { status, headers, body }: ServiceAnswer,
  { signal, progress, maximumBytes = serviceAnswers.bytes.answer }: ExchangeOptions,
): Promise<Exchange> {
  const store = new ByteStore();
  const pieces = typeof body === 'string' ? [Buffer.from(body)] : body instanceof Uint8Array ? [body] : body;
  for await (const piece of pieces) {
    if (signal.aborted) break;
    progress?.();
    if (store.size + piece.length > maximumBytes) return { _tag: 'oversized', status, maximumBytes };
    store.add(piece);
  }
  return { _tag: 'answered', status, headers, body: store.take() };
}
