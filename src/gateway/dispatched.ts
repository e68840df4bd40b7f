import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import { guarded } from '../base/foreign-traffic.ts';
import { modelAnswers } from '../bounds/model.ts';

/** The beginning of an answer, and its bytes as they arrive. */
export interface Dispatched {
  status: number;
  headers: IncomingHttpHeaders;
  /**
   * Read it once. Ends with the answer. Throws the translated error that broke it, or the signal's reason.
   */
  body: AsyncIterable<Buffer>;
  /** Ends an answer whose rest is not needed. */
  discard(): void;
}

/** The overhead of a chunk in bytes. */
const bytesOfPiece = 256;

/** Bytes of a chunk that takes longer to copy than to pass on alone. */
const largePiece = 2 ** 14;

/**
 * Sends one request and resolves with the beginning of its answer. Like undici's `request`, but without its
 * streams: they report the end of an answer one turn of the event loop after its last bytes. The answer would
 * then be forwarded in two writes, which doubles the time of a small request.
 *
 * @param translate turns undici's error into the error to throw; not called for aborts
 */
export function dispatched(
  dispatcher: Dispatcher,
  options: Dispatcher.DispatchOptions,
  signal: AbortSignal,
  translate: (error: unknown) => Error,
): Promise<Dispatched> {
  const begun = Promise.withResolvers<Dispatched>();
  const waiting: Buffer[] = [];
  let size = 0;
  let wake: (() => void) | undefined;
  let ended = false;
  let failure: { reason: unknown } | undefined;
  let connection: Dispatcher.DispatchController | undefined;

  const end = () => {
    ended = true;
    signal.removeEventListener('abort', abort);
    wake?.();
  };
  const fail = (reason: unknown) => {
    if (ended) return;
    failure = { reason };
    begun.reject(reason);
    end();
  };
  const stop = (reason: Error) => {
    waiting.length = 0;
    fail(reason);
    connection?.abort(reason);
  };
  const abort = () => stop(signal.reason);
  const discard = () => {
    if (!ended) stop(new Error('the rest of the answer is not wanted'));
  };

  async function* read(): AsyncGenerator<Buffer, void> {
    try {
      while (true) {
        if (waiting.length > 0) {
          const chunks = waiting.splice(0);
          const bytes = size - chunks.length * bytesOfPiece;
          size = 0;
          if (connection?.paused) connection.resume();
          // Small ones are joined, so that a late reader has no overhead for each.
          if (bytes >= chunks.length * largePiece) yield* chunks;
          else yield chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks);
        } else if (failure) throw failure.reason;
        else if (ended) return;
        else {
          const more = Promise.withResolvers<void>();
          wake = more.resolve;
          await more.promise;
        }
      }
    } finally {
      discard();
    }
  }

  // Many trials share a connection, so its callbacks run in the context of any of them. They only settle
  // promises: what awaits these continues in its own context.
  const heard = <Given extends unknown[]>(handle: (...given: Given) => void) =>
    guarded(handle, (error) => stop(translate(error)));

  signal.addEventListener('abort', abort, { once: true });
  dispatcher.dispatch(options, {
    onRequestStart: heard((controller) => {
      connection = controller;
      if (failure) controller.abort(failure.reason as Error);
    }),
    onResponseStart: heard((_controller, status, headers) => {
      // Statuses below 200 do not end a response, except 101, which no request asks for.
      if (status < 200) return;
      begun.resolve({ status, headers, body: read(), discard });
    }),
    onResponseData: heard((controller, chunk) => {
      if (ended) return;
      waiting.push(chunk);
      size += chunk.length + bytesOfPiece;
      if (size > modelAnswers.bytes.waiting) controller.pause();
      wake?.();
    }),
    onResponseEnd: heard(end),
    onResponseError: heard((_controller, error) => fail(translate(error))),
  } satisfies Dispatcher.DispatchHandler);
  return begun.promise;
}
