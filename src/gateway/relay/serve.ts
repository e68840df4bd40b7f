import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { performServerHandshake, type ServerHttp2Session } from 'node:http2';
import type { Duplex } from 'node:stream';
import { Connection } from './connection.ts';
import { plainAnswer } from './plain-answer.ts';
import type { RelayHandler } from './relay.ts';

/** Connections of one sandbox. Twice what its relay takes: one counts here until all is done with it. */
const parallelConnections = 1024;
/** Requests of one sandbox under way at a time; one connection can send many ahead. */
const parallelRequests = 1024;
const maxHeaders = 256;
/** Bytes on their way to a request's handler that does not read. */
const connectionWindow = 256 * 1024;
const noLimit = 2 ** 30;

/**
 * This process's end of a sidecar's standard streams: reads the HTTP/1.1 on the sandbox's connections, and calls `handler` for each request. The
 * session ends with the streams, and then destroys the requests in flight.
 */
export function serveRelay(stdio: Duplex, handler: RelayHandler): ServerHttp2Session {
  const server = readingServer(handler);
  const session = performServerHandshake(stdio, {
    settings: { maxConcurrentStreams: parallelConnections, initialWindowSize: connectionWindow },
    // Node would end the session above these, and one hostile client with it all others. Megabytes; windows bound memory.
    maxSessionMemory: 4096,
    maxSessionInvalidFrames: noLimit,
    maxSessionRejectedStreams: noLimit,
    streamResetBurst: noLimit,
    streamResetRate: noLimit,
  });
  session.setLocalWindowSize(noLimit);
  session.on('stream', (stream) => {
    stream.respond({ ':status': 200 });
    server.emit(
      'connection',
      new Connection(stream).on('error', () => undefined),
    );
  });
  session.on('error', () => session.destroy());
  stdio.on('error', () => session.destroy());
  stdio.on('close', () => session.destroy());
  return session;
}

/** An HTTP server that listens nowhere. It has no time limits: a model may take its time for any part of an exchange, and connections are few. */
function readingServer(handler: RelayHandler): Server {
  let underWay = 0;
  const request = (asked: IncomingMessage, response: ServerResponse) => {
    const [status, reason] = refusal(asked, underWay) ?? [];
    if (status !== undefined) {
      response.writeHead(status, { connection: 'close', 'content-type': 'text/plain' }).end(reason);
      return;
    }
    underWay += 1;
    response.once('close', () => {
      underWay -= 1;
    });
    handler.request(asked, response);
  };
  const settings = {
    insecureHTTPParser: false,
    maxHeaderSize: 32 * 1024,
    headersTimeout: 0,
    requestTimeout: 0,
    keepAliveTimeout: 0,
    // Other protocols that a client offers to switch to are no reason to refuse its request.
    shouldUpgradeCallback: ({ headers }: IncomingMessage) => headers.upgrade?.toLowerCase() === 'websocket',
  };
  const server = createServer(settings, request);
  // Counted by us: Node would drop what is above its limit, and pass on the rest.
  server.maxHeadersCount = 0;
  server.on('connect', (asked, client, first) => {
    handler.connect(asked, client, first);
  });
  server.on('upgrade', (_asked, client) => {
    client.resume();
    client.end(plainAnswer(426, 'The model is reached by plain HTTP requests; WebSockets are not carried.'));
  });
  // Node's own answer would be lost with the connection.
  server.on('clientError', (error: NodeJS.ErrnoException, client) => {
    const status = error.code === 'HPE_HEADER_OVERFLOW' ? 431 : 400;
    if (client.writable) client.end(plainAnswer(status, 'The request cannot be read.'));
    else client.destroy();
  });
  return server;
}

function refusal({ rawHeaders }: IncomingMessage, underWay: number): [number, string] | undefined {
  if (rawHeaders.length > 2 * maxHeaders) return [431, `A request may have ${maxHeaders} headers.\n`];
  if (underWay >= parallelRequests) return [503, `There are ${parallelRequests} requests under way.\n`];
  return undefined;
}
