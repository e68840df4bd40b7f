import {
  type ClientRequest,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
} from 'node:http';
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2';
import { type Duplex, duplexPair } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import type { GatewaySession } from '../../src/gateway/gateway.ts';
import { serveRelay } from '../../src/gateway/relay/serve.ts';

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  bytes: Buffer;
  /** The body as JSON, or as text where it is none. */
  // biome-ignore lint/suspicious/noExplicitAny: answers of any shape are looked into
  body: any;
}

export interface Request {
  method?: string;
  /** Or an absolute URL, as a proxy's client sends it. */
  path?: string;
  headers?: Record<string, string | string[]>;
  body?: string | Buffer | object;
}

/**
 * Replaces the relay of one sandbox: a connection for each request reaches the session over HTTP/2, as
 * through the relay.
 */
export interface Sandbox extends AsyncDisposable {
  /** Sends a request whose answer the test reads by itself. */
  request(request: Request): ClientRequest;
  /** Resolves with the whole answer; rejects where it is broken off. */
  ask(request: Request): Promise<Answer>;
  /** A connection as the sandbox's clients make it. */
  connection(): ClientHttp2Stream;
  http2: ClientHttp2Session;
}

export function sandboxOf(session: GatewaySession): Sandbox {
  const [inside, outside] = duplexPair();
  const server = serveRelay(outside, session.handler);
  const http2 = connect('http://gateway', { createConnection: () => inside, maxSessionMemory: 4096 });
  http2.on('error', () => http2.destroy());

  const connection = () => {
    const stream = http2.request({ ':method': 'CONNECT', ':authority': 'gateway' }, { endStream: false });
    // Also where nobody waits for an answer.
    stream.on('error', () => undefined);
    return stream;
  };
  const request = ({ method = 'POST', path = '/v1/chat/completions', headers = {}, body }: Request) => {
    const createConnection = (): Duplex => connection();
    const sent = httpRequest({ createConnection, method, path, headers: { host: 'model', ...headers } });
    sent.on('error', () => undefined);
    return sent.end(bytesOf(body));
  };
  return {
    request,
    ask: async (asked) => answerOf(await responseOf(request(asked))),
    connection,
    http2,
    async [Symbol.asyncDispose]() {
      http2.destroy();
      server.destroy();
      inside.destroy();
      outside.destroy();
    },
  };
}

/** Goes away as the relay tells it of a client that did. */
export function leave({ socket }: ClientRequest): void {
  const connection: unknown = socket;
  (connection as ClientHttp2Stream).close(constants.NGHTTP2_CANCEL);
}

/** The beginning of an answer. */
export function responseOf(request: ClientRequest): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  request.once('response', resolve);
  request.once('error', reject);
  return promise;
}

export async function answerOf(response: IncomingMessage): Promise<Answer> {
  const bytes = await buffer(response);
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    bytes,
    body: parsed(bytes.toString()),
  };
}

/** The bytes of a stream until they hold `text`. */
export async function untilSeen(stream: Duplex | IncomingMessage, text: string): Promise<string> {
  let seen = '';
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const look = (chunk: Buffer) => {
    seen += chunk.toString();
    if (seen.includes(text)) resolve();
  };
  const over = () => reject(new Error(`the stream ended after ${JSON.stringify(seen)}`));
  stream.on('data', look);
  stream.once('close', over);
  await promise.finally(() => stream.off('data', look).off('close', over));
  return seen;
}

function bytesOf(body: Request['body']): string | Buffer | undefined {
  return typeof body === 'object' && !Buffer.isBuffer(body) ? JSON.stringify(body) : body;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
