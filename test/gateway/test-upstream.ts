import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

/** A request as the upstream got it. */
export interface Received {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  rawHeaders: string[];
  body: Buffer;
}

export type Step = (response: ServerResponse, received: Received) => unknown;

export interface TestUpstream extends AsyncDisposable {
  port: number;
  url: string;
  received: Received[];
  /** Connections that stand. */
  open: Set<Socket>;
}

/** A real HTTP server on this machine: answers each request with the next step; the last step repeats. */
export function testUpstream(...steps: Step[]): Promise<TestUpstream> {
  return testUpstreamAt(0, ...steps);
}

/** The same at a port. */
export async function testUpstreamAt(wanted: number, ...steps: Step[]): Promise<TestUpstream> {
  const open = new Set<Socket>();
  const received: Received[] = [];
  const server = createServer(async (request, response) => {
    const step = steps[Math.min(received.length, steps.length - 1)];
    const { method = '', url: path = '', headers, rawHeaders } = request;
    const entry: Received = { method, path, headers, rawHeaders, body: Buffer.alloc(0) };
    received.push(entry);
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk);
    } catch {
      // Its client has gone, and is answered nothing.
      return;
    }
    entry.body = Buffer.concat(chunks);
    step?.(response, entry);
  });
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => open.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(wanted, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `http://127.0.0.1:${port}/v1`,
    received,
    open,
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export function json(status: number, body: unknown, headers: Record<string, string> = {}): Step {
  return (response) =>
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}

/** A stream of events in one piece. */
export function events(text: string): Step {
  return (response) => response.writeHead(200, { 'content-type': 'text/event-stream' }).end(text);
}

/** An answer of openai-chat. */
export const chatAnswer = {
  id: 'c1',
  object: 'chat.completion',
  model: 'big-1-2026',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
  usage: {
    prompt_tokens: 100,
    completion_tokens: 20,
    total_tokens: 120,
    prompt_tokens_details: { cached_tokens: 40 },
  },
};
