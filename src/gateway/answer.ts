import type { ServerResponse } from 'node:http';
import { messageOf, OffsiteError } from '../offsite-error.ts';
import type { Wire } from '../suite/model-config.ts';
import { Refusal } from './refusal.ts';
import type { UpstreamAnswer } from './upstream.ts';
import { dialects } from './wires/dialects.ts';

/** Bytes of an answer that wait for its client: the more go out at once, the less each costs. */
const mostAhead = 256 * 1024;

/** Answers with a JSON document. What the client still sends is let go of, so that it gets to read the answer. */
export function answerJson(
  response: ServerResponse,
  status: number,
  body: object,
  headers: Record<string, string> = {},
): void {
  if (response.destroyed || response.headersSent) return;
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
  response.req.resume();
}

/** Answers what was thrown, in the shape of the wire; an answer that had begun is broken off. */
export function answerError(response: ServerResponse, wire: Wire, thrown: unknown): void {
  if (response.headersSent) {
    breakOff(response);
    return;
  }
  const { status, message } = told(thrown);
  const code = thrown instanceof OffsiteError ? thrown.code.toLowerCase() : 'gateway_failed';
  // By this header the makers' own client libraries know that asking again is no use: it has been done here.
  const headers: Record<string, string> = status >= 500 ? { 'x-should-retry': 'false' } : {};
  answerJson(response, status, dialects[wire].errorBody(status, code, message), headers);
}

/** Answers what was thrown to a client of the proxy, which speaks no wire. */
export function answerText(response: ServerResponse, thrown: unknown): void {
  if (response.headersSent) {
    breakOff(response);
    return;
  }
  const { status, message } = told(thrown);
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' }).end(`${message}\n`);
  response.req.resume();
}

/** What a client is told of what was thrown. */
export function told(thrown: unknown): { status: number; message: string } {
  const hint = thrown instanceof OffsiteError ? thrown.hint : undefined;
  return {
    status: thrown instanceof Refusal ? thrown.status : 502,
    message: [messageOf(thrown), hint].filter(Boolean).join('. '),
  };
}

/** So that the client sees a broken answer, not a short one. */
function breakOff(response: ServerResponse): void {
  if (!response.writableFinished) response.destroy(new Error('the answer was broken off'));
}

/**
 * Answers with bytes as they come, no faster than they are read. Rejects as `body` does, or with the signal's reason: then the answer may have
 * begun.
 */
export async function pass(
  { status, headers, body }: UpstreamAnswer,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  response.writeHead(status, headers);
  // The beginning of a body that is there already goes out together with the head; one that is not does not hold the head back.
  const head = setImmediate(() => response.flushHeaders());
  try {
    for await (const chunk of body) {
      clearImmediate(head);
      if (signal.aborted) break;
      if (!response.write(chunk) && response.writableLength > mostAhead) await drained(response, signal);
    }
    signal.throwIfAborted();
    response.end();
  } finally {
    clearImmediate(head);
  }
}

/** Resolves when there is room again, or `signal` aborts. */
async function drained(response: ServerResponse, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const go = () => resolve();
  response.once('drain', go);
  signal.addEventListener('abort', go, { once: true });
  await promise;
  response.off('drain', go);
  signal.removeEventListener('abort', go);
}
