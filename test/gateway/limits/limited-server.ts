import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';

export interface LimitedServer extends AsyncDisposable {
  url: string;
  /** Requests that it works on at a time. May be changed. */
  capacity: number;
  answered: number;
  refused: number;
  /** The most requests that were there at a time, waiting ones included. */
  peak: number;
}

export interface LimitedServerOptions {
  capacity: number;
  /** What happens to one more request. */
  beyond: 'refuses' | 'queues';
  /** Seconds that a refusal asks to wait. */
  retryAfter?: number;
  /** Milliseconds to the first token, and for the rest; each request takes up to a quarter more or less. */
  firstMs: number;
  restMs: number;
}

/** A model of the wire openai-chat, over HTTP on this machine, which has room for so many requests. */
export async function limitedServer(options: LimitedServerOptions): Promise<LimitedServer> {
  const { beyond, firstMs, restMs, retryAfter } = options;
  const queue: (() => void)[] = [];
  let working = 0;
  let present = 0;
  const pump = () => {
    while (queue.length > 0 && working < limited.capacity) {
      working += 1;
      queue.shift()?.();
    }
  };
  const answer = async (response: ServerResponse, isStreamed: boolean) => {
    const about = (ms: number) => delay(ms * (0.75 + Math.random() / 2));
    await about(firstMs);
    if (!isStreamed) {
      await about(restMs);
      response.writeHead(200, { 'content-type': 'application/json' }).end(whole);
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(event('"delta":{"content":"yes"}'));
    await about(restMs);
    response.write(event('"delta":{},"finish_reason":"stop"'));
    response.end(
      `data: {"id":"1","object":"chat.completion.chunk","choices":[],${usage}}\n\ndata: [DONE]\n\n`,
    );
  };
  const server = createServer(async (request, response) => {
    const asked = await text(request);
    if (beyond === 'refuses' && working >= limited.capacity) {
      limited.refused += 1;
      const wait = retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) };
      response.writeHead(429, { 'content-type': 'application/json', ...wait });
      response.end('{"error":{"message":"too many requests"}}');
      return;
    }
    present += 1;
    limited.peak = Math.max(limited.peak, present);
    const { promise: begun, resolve } = Promise.withResolvers<void>();
    queue.push(resolve);
    pump();
    await begun;
    await answer(response, asked.includes('"stream":true'));
    limited.answered += 1;
    present -= 1;
    working -= 1;
    pump();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const limited: LimitedServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    capacity: options.capacity,
    answered: 0,
    refused: 0,
    peak: 0,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return limited;
}

const usage = '"usage":{"prompt_tokens":10,"completion_tokens":1,"total_tokens":11}';

const whole =
  '{"id":"1","object":"chat.completion","model":"limited","choices":[{"index":0,"finish_reason":"stop",' +
  `"message":{"role":"assistant","content":"yes"}}],${usage}}`;

function event(choice: string): string {
  return `data: {"id":"1","object":"chat.completion.chunk","model":"limited","choices":[{"index":0,${choice}}]}\n\n`;
}
