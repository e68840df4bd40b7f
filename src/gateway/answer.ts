import type { ServerResponse } from 'node:http';
import { modelRequests } from '../bounds/sandbox.ts';
import type { Clock } from '../clock.ts';
import { startDeadline } from '../deadline.ts';
import { messageOf, OffsiteError } from '../offsite-error.ts';
import type { Wire } from '../suite/model-config.ts';
import { Refusal } from './refusal.ts';
import type { UpstreamAnswer } from './upstream.ts';
import { wireTable } from './wires/wire-table.ts';

/**
 * Answers with a JSON document. Discards what the client still sends, so that the client reads the answer.
 */
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

/** Answers with what was thrown, in the shape of the wire. Breaks off an answer that has begun. */
export function answerError(response: ServerResponse, wire: Wire, thrown: unknown): void {
  if (response.headersSent) {
    breakOff(response);
    return;
  }
  const { status, message } = told(thrown);
  const code = thrown instanceof OffsiteError ? thrown.code.toLowerCase() : 'gateway_failed';
  // This header tells the makers' own client libraries not to retry: the gateway has done that.
  const headers: Record<string, string> = status >= 500 ? { 'x-should-retry': 'false' } : {};
  answerJson(response, status, wireTable[wire].errorBody(status, code, message), headers);
}

/** Answers with what was thrown to a client of the proxy, which speaks no wire. */
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
 * Answers with bytes as they come, no faster than they are read. Rejects as `body` does, or with the reason
 * of `stopping`: then the answer may have begun. Aborts `stopping` where its client does not read it.
 */
export async function pass(
  { status, headers, body }: UpstreamAnswer,
  response: ServerResponse,
  { stopping, clock }: { stopping: AbortController; clock: Clock },
): Promise<void> {
  const { signal } = stopping;
  signal.throwIfAborted();
  response.writeHead(status, headers);
  // The beginning of a body that is there already goes out together with the head; one that is not does not
  // hold the head back.
  const head = setImmediate(() => response.flushHeaders());
  let pieces = 0;
  try {
    for await (const chunk of body) {
      clearImmediate(head);
      if (signal.aborted) break;
      const { promise: sent, resolve } = Promise.withResolvers<void>();
      pieces += 1;
      response.write(chunk, () => {
        pieces -= 1;
        resolve();
      });
      if (
        response.writableLength <= modelRequests.bytes.answerAhead &&
        pieces < modelRequests.count.answerPieces
      )
        continue;
      using limit = startDeadline(clock, modelRequests.time.unreadAnswer, [signal], unread);
      limit.signal.addEventListener('abort', () => resolve(), { once: true });
      await sent;
      if (limit.expired()) stopping.abort(limit.signal.reason);
    }
    signal.throwIfAborted();
    response.end();
  } finally {
    clearImmediate(head);
  }
}

function unread(): OffsiteError {
  const seconds = modelRequests.time.unreadAnswer / 1000;
  return new OffsiteError(`its client left the answer unread for ${seconds} s, so it was ended`, {
    code: 'ANSWER_UNREAD',
    kind: 'infrastructure',
  });
}
