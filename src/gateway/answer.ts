import { once } from 'node:events';
import type { OutgoingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import { messageOf, OffsiteError } from '../offsite-error.ts';
import type { Wire } from '../suite/model-config.ts';
import { Refusal } from './refusal.ts';
import { dialects } from './wires/dialects.ts';

/** Answers with a JSON document. */
export function answerJson(
  stream: ServerHttp2Stream,
  status: number,
  body: object,
  headers: OutgoingHttpHeaders = {},
): void {
  if (stream.destroyed || stream.headersSent) return;
  stream.respond({ ':status': status, 'content-type': 'application/json', ...headers });
  stream.end(JSON.stringify(body));
  // What the client still sends is let go of, so that it gets to read the answer.
  stream.resume();
}

/** Answers what was thrown, in the shape of the wire; a stream whose answer had begun is broken off. */
export function answerError(stream: ServerHttp2Stream, wire: Wire, thrown: unknown): void {
  if (stream.headersSent) {
    breakOff(stream);
    return;
  }
  const status = thrown instanceof Refusal ? thrown.status : 502;
  const expected = thrown instanceof OffsiteError;
  const code = expected ? thrown.code.toLowerCase() : 'gateway_failed';
  const message = [messageOf(thrown), expected ? thrown.hint : undefined].filter(Boolean).join('. ');
  // By this header the makers' own client libraries know that asking again is no use: it has been done here.
  const headers = status >= 500 ? { 'x-should-retry': 'false' } : {};
  answerJson(stream, status, dialects[wire].errorBody(status, code, message), headers);
}

/** Answers what was thrown to a client of the proxy, which speaks no wire. */
export function answerText(stream: ServerHttp2Stream, thrown: unknown): void {
  if (stream.destroyed) return;
  if (stream.headersSent) {
    breakOff(stream);
    return;
  }
  const status = thrown instanceof Refusal ? thrown.status : 502;
  const hint = thrown instanceof OffsiteError ? thrown.hint : undefined;
  stream.respond({ ':status': status, 'content-type': 'text/plain; charset=utf-8' });
  stream.end(`${[messageOf(thrown), hint].filter(Boolean).join('. ')}\n`);
  stream.resume();
}

/**
 * Ends a stream so that its client sees a broken answer, not a short one. `close` with an error code would not do: Node ends the stream
 * properly first, and then there is nothing left to reset.
 */
function breakOff(stream: ServerHttp2Stream): void {
  stream.destroy(new Error('the answer was broken off'));
}

/** Writes bytes as they come, no faster than they are read. Rejects as `source` does, or with the signal's reason. */
export async function pump(
  source: AsyncIterable<Uint8Array>,
  stream: ServerHttp2Stream,
  signal: AbortSignal,
): Promise<void> {
  for await (const chunk of source) {
    if (signal.aborted) break;
    if (!stream.write(chunk)) await once(stream, 'drain', { signal });
  }
  signal.throwIfAborted();
  stream.end();
}
