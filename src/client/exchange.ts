import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { ByteStore } from '../base/byte-store.ts';
import { serviceAnswers } from '../bounds/service.ts';

/**
 * The outcome of one request on the wire. `sent` is false only if not one byte of it was written. Undici
 * starts a request when it writes it, on an open connection (through the proxy and TLS, if there are any).
 */
export type Exchange =
  | {
      _tag: 'answered';
      status: number;
      headers: IncomingHttpHeaders;
      body: Buffer;
    }
  | { _tag: 'oversized'; status: number; maximumBytes: number }
  | { _tag: 'broken'; sent: boolean; error: Error }
  /** The signal aborted it. */
  | { _tag: 'stopped'; sent: boolean };

export interface ExchangeRequest {
  origin: string;
  path: string;
  /** Default: POST. */
  method?: 'GET' | 'POST';
  headers: Record<string, string>;
  body?: string | Readable;
}

export interface ExchangeOptions {
  signal: AbortSignal;
  /** Called whenever a part of the body has arrived. */
  progress?: (() => void) | undefined;
  /** The size limit of the answer. */
  maximumBytes?: number | undefined;
}

/** The way of requests to a service. */
export interface Transport extends AsyncDisposable {
  /** The service, for messages. */
  readonly origin: string;
  /**
   * Sends one request and collects the answer. Never rejects.
   *
   * @param options.repeatable whether the service may get the request twice
   */
  exchange(request: ExchangeRequest, options: ExchangeOptions & { repeatable: boolean }): Promise<Exchange>;
}

/**
 * Sends one request and collects the answer. Never rejects. Does not follow redirects. If `signal` aborts,
 * the connection is closed, and a request that still waits for a connection is never written.
 */
export function exchange(
  dispatcher: Dispatcher,
  request: ExchangeRequest,
  { signal, progress, maximumBytes = serviceAnswers.bytes.answer }: ExchangeOptions,
): Promise<Exchange> {
  const { promise, resolve } = Promise.withResolvers<Exchange>();
  let controller: Dispatcher.DispatchController | undefined;
  let status = 0;
  let headers: IncomingHttpHeaders = {};
  const body = new ByteStore();

  const settle = (result: Exchange) => {
    signal.removeEventListener('abort', stop);
    resolve(result);
  };
  const stop = () => {
    settle({ _tag: 'stopped', sent: controller !== undefined });
    controller?.abort(new Error('stopped'));
  };
  if (signal.aborted) return Promise.resolve({ _tag: 'stopped', sent: false });
  signal.addEventListener('abort', stop, { once: true });

  const handler: Dispatcher.DispatchHandler = {
    onRequestStart(started) {
      // Undici cannot cancel a request that waits for its connection; this is the last moment to do it.
      if (signal.aborted) started.abort(new Error('stopped'));
      else controller = started;
    },
    onResponseStart(_controller, statusCode, received) {
      // 1xx only announces the answer.
      if (statusCode < 200) return;
      status = statusCode;
      headers = received;
    },
    onResponseData(current, chunk) {
      progress?.();
      if (body.size + chunk.length <= maximumBytes) {
        body.add(chunk);
        return;
      }
      body.clear();
      settle({ _tag: 'oversized', status, maximumBytes });
      current.abort(new Error('oversized'));
    },
    onResponseEnd() {
      settle({ _tag: 'answered', status, headers, body: body.take() });
    },
    onResponseError(_controller, error) {
      settle({ _tag: 'broken', sent: controller !== undefined, error });
    },
  };
  try {
    dispatcher.dispatch({ method: 'POST', ...request }, handler);
  } catch (error) {
    signal.removeEventListener('abort', stop);
    throw error;
  }
  return promise;
}
