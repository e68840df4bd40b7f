import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createSecureServer, type ServerOptions } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';

/** A request as the service got it. */
export interface Received {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

/** What the service does with one request. */
export type Step = (response: ServerResponse, received: Received) => unknown;

export interface ScriptedService extends AsyncDisposable {
  port: number;
  url: string;
  received: Received[];
  /** Every connection ever made, and those that stand. */
  connected: number;
  open: Set<Socket>;
}

/**
 * A real HTTP server on this machine that answers the first request with the first step and so on; the last
 * step repeats.
 */
export async function scriptedService(...steps: Step[]): Promise<ScriptedService> {
  return listen(steps, (handle) => createServer(handle));
}

export async function secureScriptedService(tls: ServerOptions, ...steps: Step[]): Promise<ScriptedService> {
  return listen(steps, (handle) => createSecureServer(tls, handle));
}

type Handle = (request: IncomingMessage, response: ServerResponse) => void;

async function listen(steps: Step[], create: (handle: Handle) => Server): Promise<ScriptedService> {
  const open = new Set<Socket>();
  const received: Received[] = [];
  const server = create(async (request, response) => {
    const step = steps[Math.min(received.length, steps.length - 1)];
    const { method = '', url: path = '', headers } = request;
    const entry: Received = { method, path, headers, body: '' };
    received.push(entry);
    for await (const chunk of request.setEncoding('utf8')) entry.body += chunk;
    step?.(response, entry);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const service = {
    port,
    url: `http://127.0.0.1:${port}`,
    received,
    connected: 0,
    open,
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  server.on('connection', (socket: Socket) => {
    service.connected += 1;
    open.add(socket);
    socket.on('close', () => open.delete(socket));
  });
  return service;
}

/** Answers with JSON. */
export function json(status: number, body: unknown, headers: Record<string, string> = {}): Step {
  return text(status, JSON.stringify(body), { 'content-type': 'application/json', ...headers });
}

/** Answers with exactly this. */
export function text(status: number, body: string | Buffer, headers: Record<string, string> = {}): Step {
  return (response) => response.writeHead(status, headers).end(body);
}

/** Reads the request, then closes the connection without a word. */
export const dropBeforeAnswer: Step = (response) => response.socket?.destroy();

/** Sends the head and half of the body, then closes the connection. */
export function dropDuringAnswer(body: string): Step {
  return (response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': String(body.length) });
    response.write(body.slice(0, body.length / 2), () => response.socket?.destroy());
  };
}

/** Answers in full, then closes the connection though it said it would keep it. */
export function dropAfterAnswer(status: number, body: unknown): Step {
  return (response) => {
    const { socket } = response;
    response.writeHead(status, { 'content-type': 'application/json', connection: 'keep-alive' });
    response.end(JSON.stringify(body), () => socket?.destroy());
  };
}

/** Never answers. */
export const silence: Step = () => undefined;

export const whoami = {
  credential: { kind: 'apiKey', name: 'laptop', start: 'sk_' },
  organization: { id: 'org-1', name: 'Acme', slug: 'acme' },
  permissions: ['evals:read'],
};
