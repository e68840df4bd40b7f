import type { ServerResponse } from 'node:http';
import type { Clock } from '../base/clock.ts';
import { type Deadline, startDeadline } from '../base/deadline.ts';
import { infrastructureError, messageOf, OffsiteError } from '../base/offsite-error.ts';
import { modelRequests } from '../bounds/sandbox.ts';
import type { ReplayedExchange } from '../record/model-account.ts';
import type { Wire } from '../suite/model-config.ts';
import { GatewayRefusal } from './room.ts';
import { wireTable } from './wires/wire-table.ts';

/** Answers with a JSON document. Discards the rest of the request, so that the client reads the answer. */
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

/** Answers with an error in the shape of the wire. If the answer has already begun, breaks it off. */
export function answerError(response: ServerResponse, wire: Wire, thrown: unknown): void {
  if (response.headersSent) {
    breakOff(response);
    return;
  }
  const { status, message } = errorForClient(thrown);
  const code = thrown instanceof OffsiteError ? thrown.code.toLowerCase() : 'gateway_failed';
  // With this header the providers' client libraries do not retry: the gateway already did.
  const headers: Record<string, string> = status >= 500 ? { 'x-should-retry': 'false' } : {};
  answerJson(response, status, wireTable[wire].errorBody(status, code, message), headers);
}

/** Answers a client of the proxy with an error as plain text, because it speaks no wire. */
export function answerText(response: ServerResponse, thrown: unknown): void {
  if (response.headersSent) {
    breakOff(response);
    return;
  }
  const { status, message } = errorForClient(thrown);
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' }).end(`${message}\n`);
  response.req.resume();
}

/** The status and message that a client gets for an error. */
export function errorForClient(thrown: unknown): { status: number; message: string } {
  const hint = thrown instanceof OffsiteError ? thrown.hint : undefined;
  return {
    status: thrown instanceof GatewayRefusal ? thrown.status : 502,
    message: [messageOf(thrown), hint].filter(Boolean).join('. '),
  };
}

/** Destroys the connection, so that the client sees a broken answer, not a short one. */
function breakOff(response: ServerResponse): void {
  if (!response.writableFinished) response.destroy(new Error('the answer was broken off'));
}

/**
 * Streams a body to the client, no faster than the client reads it. Rejects as `body` does, or with the
 * reason of `stopping`; the answer may have begun by then. Aborts `stopping` if the client does not read.
 */
export async function pass(
  { status, headers, body }: UpstreamAnswer,
  response: ServerResponse,
  { stopping, clock }: { stopping: AbortController; clock: Clock },
): Promise<void> {
  const { signal } = stopping;
  signal.throwIfAborted();
  response.writeHead(status, headers);
  // If the body's beginning is already there, it is sent together with the head; otherwise the head does not
  // wait for it.
  const head = setImmediate(() => response.flushHeaders());
  let pieces = 0;
  let last: PromiseWithResolvers<void> | undefined;
  const withinLimit = async (sent: Promise<void>, resolve: () => void) => {
    let limit: Deadline | undefined;
    // To start a deadline takes longer than to send most pieces.
    const late = setTimeout(() => {
      limit = startDeadline(clock, modelRequests.time.unreadAnswer, [signal], unread);
      limit.signal.addEventListener('abort', () => resolve(), { once: true });
      if (signal.aborted) resolve();
    }, soonMs);
    await sent;
    clearTimeout(late);
    limit?.[Symbol.dispose]();
    if (limit?.expired()) stopping.abort(limit.signal.reason);
  };
  try {
    for await (const chunk of body) {
      clearImmediate(head);
      if (signal.aborted) break;
      last = Promise.withResolvers<void>();
      const { promise: sent, resolve } = last;
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
      await withinLimit(sent, resolve);
    }
    signal.throwIfAborted();
    response.end();
  } catch (error) {
    // What came before is sent first: it may say why the answer breaks off.
    if (last && !signal.aborted) await withinLimit(last.promise, last.resolve);
    throw error;
  } finally {
    clearImmediate(head);
  }
}

/** Most pieces are sent by then. */
const soonMs = 20;

function unread(): OffsiteError {
  const seconds = modelRequests.time.unreadAnswer / 1000;
  return infrastructureError(
    'ANSWER_UNREAD',
    `its client did not read the answer for ${seconds} s, so the answer was ended`,
  );
}

/** One request to a model, in the form of its wire. */
export interface UpstreamRequest {
  wire: Wire;
  method: string;
  /** Path and query below the model's base URL: `/chat/completions`, `/responses`, `/messages?beta=true`. */
  path: string;
  /** Lower-case names, only end-to-end headers; no credential. */
  headers: Record<string, string>;
  body: Buffer;
  /**
   * Whether its sender says in the conversation which form the answer needs, and checks it. Then the option
   * that asks for this form may be left out.
   */
  checksForm?: boolean;
}

export interface UpstreamAnswer {
  status: number;
  /** Lower-case names, only end-to-end headers. */
  headers: Record<string, string | string[]>;
  /** The body's bytes as they arrive; ends or throws as the upstream does. */
  body: AsyncIterable<Uint8Array>;
  /** Bytes that the decoder holds, if the body is compressed. */
  decoderBytes?: number | undefined;
  /** Paths of the request that were left out, because the server does not accept them. */
  leftOut?: readonly string[] | undefined;
  /** How the server refused the same request with more in it, before it gave this answer. */
  refusals?: readonly string[] | undefined;
  /** Set if a script had no turn for a conversation that began. */
  unscripted?: true | undefined;
  /** Set if a recorded exchange gave it. */
  replayed?: ReplayedExchange | undefined;
}

/** The source of a model's answers: an HTTP API, or a file of scripted turns. */
export interface Upstream {
  /**
   * Resolves with the beginning of the answer. Rejects if none arrives. An abort of `signal` ends the request
   * and its body.
   */
  send(request: UpstreamRequest, signal: AbortSignal): Promise<UpstreamAnswer>;
}

/** A body whose bytes are all there. */
export async function* singleChunk(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield bytes;
}
