import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from 'node:http2';
import { duplexPair } from 'node:stream';
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
  path?: string;
  headers?: OutgoingHttpHeaders;
  body?: string | Buffer | object;
}

/** What stands for the relay of one sandbox: its requests reach the session over HTTP/2, as the relay sends them. */
export interface Sandbox extends AsyncDisposable {
  request(request: Request): ClientHttp2Stream;
  /** Resolves with the whole answer; rejects where it is broken off. */
  ask(request: Request): Promise<Answer>;
  http2: ClientHttp2Session;
}

export function sandboxOf(session: GatewaySession): Sandbox {
  const [inside, outside] = duplexPair();
  const server = serveRelay(outside, (stream, headers) => session.handle(stream, headers));
  const http2 = connect('http://model', { createConnection: () => inside, maxSessionMemory: 4096 });
  http2.on('error', () => http2.destroy());

  const request = ({ method = 'POST', path = '/v1/chat/completions', headers = {}, body }: Request) => {
    const target = method === 'CONNECT' ? {} : { ':path': path };
    const stream = http2.request({ ':method': method, ...target, ...headers });
    // Also where nobody waits for the answer.
    stream.on('error', () => undefined);
    if (method !== 'CONNECT') stream.end(bytesOf(body));
    return stream;
  };
  return {
    request,
    ask: async (asked) => answerOf(request(asked)),
    http2,
    async [Symbol.asyncDispose]() {
      http2.destroy();
      server.destroy();
      inside.destroy();
      outside.destroy();
    },
  };
}

async function answerOf(stream: ClientHttp2Stream): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingHttpHeaders>();
  const chunks: Buffer[] = [];
  const closed = new Promise<void>((over) => stream.once('close', over));
  stream.once('response', resolve);
  stream.once('error', reject);
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  const none = closed.then(() => reject(new Error(`closed with code ${stream.rstCode} before an answer`)));
  const headers = await promise;
  await none;
  if (stream.rstCode !== 0 || !stream.readableEnded)
    throw new Error(`broken off with code ${stream.rstCode}`);
  const bytes = Buffer.concat(chunks);
  return { status: Number(headers[':status']), headers, bytes, body: parsed(bytes.toString()) };
}

/** The bytes of a stream until they hold `text`. */
export async function untilSeen(stream: ClientHttp2Stream, text: string): Promise<string> {
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
