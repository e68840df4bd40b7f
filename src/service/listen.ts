import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { getRequestListener } from '@hono/node-server';
import type { Clock } from '../base/clock.ts';
import { pause } from '../base/deadline.ts';
import { listenTo } from '../base/foreign-traffic.ts';
import { inputError, messageOf } from '../base/offsite-error.ts';
import { serviceRequests } from '../bounds/callers.ts';
import { refusePart } from './json-response.ts';

/** The time and size limits of a connection before it is closed. Times are milliseconds. */
export interface ConnectionLimits {
  /** Until all headers have arrived. */
  headersMs: number;
  /** Until the whole request has arrived. */
  requestMs: number;
  /** Between two requests. */
  idleMs: number;
  headerBytes: number;
  /** How many at a time. For a further one, the one that has asked nothing for the longest time is closed. */
  connections: number;
}

const connectionLimits: ConnectionLimits = {
  headersMs: serviceRequests.time.head,
  requestMs: serviceRequests.time.request,
  idleMs: serviceRequests.time.idle,
  headerBytes: serviceRequests.bytes.head,
  connections: serviceRequests.count.connections,
};

export interface Listener {
  url: string;
  port: number;
  /** Accepts no new connections, gives requests in flight `graceMs` to end, then closes the rest. */
  close(graceMs: number): Promise<void>;
}

export interface ListenOptions {
  host?: string;
  /** 0 for any free port. */
  port?: number;
  limits?: Partial<ConnectionLimits>;
}

/** Serves `fetch` over HTTP/1.1. Throws an `input` error if it cannot listen on the address. */
export async function listen(
  fetch: (request: Request) => Response | Promise<Response>,
  { host = '127.0.0.1', port = 0, limits }: ListenOptions,
  clock: Clock,
): Promise<Listener> {
  const { headersMs, requestMs, idleMs, headerBytes, connections } = { ...connectionLimits, ...limits };
  const server = createServer(
    {
      headersTimeout: headersMs,
      requestTimeout: requestMs,
      keepAliveTimeout: idleMs,
      maxHeaderSize: headerBytes,
      connectionsCheckingInterval: Math.min(5_000, headersMs / 2),
    },
    getRequestListener(fetch, { hostname: host, errorHandler: unreadable }),
  );
  // Also if no connection can be accepted, for example because too many files are open: only that client is
  // affected.
  listenTo(server, { clientError: answerClientError }, () => undefined);
  const quiet = trackQuietConnections(server, connections);
  await startListening(server, host, port);
  const address = server.address() as AddressInfo;
  const name = address.family === 'IPv6' ? `[${address.address}]` : address.address;
  return {
    url: `http://${name}:${address.port}`,
    port: address.port,
    close: (graceMs) => closeGracefully(server, { quiet, graceMs, clock }),
  };
}

const listenHints: Readonly<Record<string, string>> = {
  EADDRINUSE: 'Choose another port, or stop what uses this one.',
  EACCES: 'Choose another port: those below 1024 may need root.',
};

function startListening(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error) => {
      reject(
        inputError('ADDRESS_UNUSABLE', `cannot listen on ${host}:${port}: ${messageOf(error)}`, {
          hint:
            listenHints[(error as NodeJS.ErrnoException).code ?? ''] ?? 'Name an address of this machine.',
          cause: error,
        }),
      );
    });
    server.listen({ host, port }, resolve);
  });
}

/**
 * The connections without a request in flight: those between two requests, and those that never had one,
 * which `server.closeIdleConnections()` leaves open. If there are more than `most` connections, the oldest of
 * these is closed, so that silent connections keep nobody out; or the new one, if all others have requests.
 */
function trackQuietConnections(server: Server, most: number): Set<Socket> {
  const quiet = new Set<Socket>();
  let open = 0;
  const connection = (socket: Socket) => {
    quiet.add(socket);
    open += 1;
    socket.once('close', () => {
      quiet.delete(socket);
      open -= 1;
    });
    if (open <= most) return;
    const [oldest] = quiet;
    if (oldest) {
      // It counts as closed from now on.
      quiet.delete(oldest);
      oldest.destroy();
    }
  };
  const request = ({ socket }: IncomingMessage, response: ServerResponse) => {
    quiet.delete(socket);
    const close = () => {
      if (!server.listening) socket.destroySoon();
      else if (!socket.destroyed) quiet.add(socket);
    };
    listenTo(response, { close }, () => socket.destroy());
  };
  listenTo(server, { connection, request }, () => undefined);
  return quiet;
}

async function closeGracefully(
  server: Server,
  { quiet, graceMs, clock }: { quiet: Set<Socket>; graceMs: number; clock: Clock },
): Promise<void> {
  const ended = new AbortController();
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  for (const socket of quiet) socket.destroy();
  try {
    const grace = pause(clock, graceMs, ended.signal);
    await Promise.race([closed, grace]);
    server.closeAllConnections();
    await closed;
  } finally {
    ended.abort();
  }
}

/** The answer to a request line or Host header that is not part of a valid URL. */
function unreadable(): Response {
  return Response.json(refusePart('the request line or the Host header cannot be read').body, {
    status: 400,
  });
}

/** Answers on the socket if no request could be read: too slow, too many headers, or not HTTP. */
function answerClientError(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (!socket.writable || (socket as Socket).bytesWritten > 0) {
    socket.destroy();
    return;
  }
  const [status, body] =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? [431, { _tag: 'HeadersTooLarge', message: 'The headers are too large.' }]
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? [408, { _tag: 'RequestTimeout', message: 'The request did not arrive in time.' }]
        : [400, refusePart('this is not HTTP').body];
  const text = JSON.stringify(body);
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status as number]}\r\nConnection: close\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
  );
}
