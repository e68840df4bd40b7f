import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { performServerHandshake, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import type { Duplex } from 'node:stream';
import { relayTraffic } from '../../bounds/sandbox.ts';
import { type EndTraffic, listenTo } from '../../foreign-traffic.ts';
import { messageOf, OffsiteError } from '../../offsite-error.ts';
import { Connection } from './connection.ts';
import { plainAnswer } from './plain-answer.ts';
import type { RelayHandler } from './relay.ts';

const noLimit = 2 ** 30;

/**
 * This process's end of a sidecar's standard streams: reads the HTTP/1.1 on the sandbox's connections, and
 * calls `handler` for each request. The session ends with the streams, and then destroys the requests in
 * flight. It also ends, with an `error`, where a request was met by a defect of ours: that is one sandbox's
 * trouble and nobody else's.
 */
export function serveRelay(stdio: Duplex, handler: RelayHandler): ServerHttp2Session {
  const session = performServerHandshake(stdio, {
    settings: {
      maxConcurrentStreams: relayTraffic.count.connections,
      initialWindowSize: relayTraffic.bytes.unreadRequest,
    },
    // Node would end the session above these, and one hostile client with it all others. Megabytes; windows
    // bound memory.
    maxSessionMemory: 4096,
    maxSessionInvalidFrames: noLimit,
    maxSessionRejectedStreams: noLimit,
    streamResetBurst: noLimit,
    streamResetRate: noLimit,
  });
  const end = (error: unknown) => session.destroy(defect(error));
  const server = readingServer(handler, end);
  session.setLocalWindowSize(noLimit);
  listenTo(
    session,
    {
      stream(stream: ServerHttp2Stream) {
        listenTo(stream, {}, end);
        // Its reset may have come along with it.
        if (stream.destroyed || stream.closed) return;
        const connection = new Connection(stream, end);
        stream.respond({ ':status': 200 });
        server.emit('connection', connection);
      },
      error: () => session.destroy(),
    },
    end,
  );
  const over = () => session.destroy();
  listenTo(stdio, { error: over, close: over }, end);
  if (stdio.destroyed) over();
  return session;
}

/**
 * An HTTP server that listens nowhere. It has no time limits: a model may take its time for any part of an
 * exchange, and connections are few.
 */
function readingServer(handler: RelayHandler, end: EndTraffic): Server {
  let underWay = 0;
  const request = (asked: IncomingMessage, response: ServerResponse): unknown => {
    // Always followed by 'close' of the response, which is what handlers look at.
    listenTo(asked, {}, end);
    const [status, reason] = refusal(asked, underWay) ?? [];
    if (status !== undefined) {
      listenTo(response, {}, end);
      response.writeHead(status, { connection: 'close', 'content-type': 'text/plain' }).end(reason);
      return undefined;
    }
    underWay += 1;
    const close = () => {
      underWay -= 1;
    };
    listenTo(response, { close }, end);
    return handler.request(asked, response);
  };
  const settings = {
    insecureHTTPParser: false,
    maxHeaderSize: relayTraffic.bytes.requestHead,
    headersTimeout: 0,
    requestTimeout: 0,
    keepAliveTimeout: 0,
    // Other protocols that a client offers to switch to are no reason to refuse its request.
    shouldUpgradeCallback: ({ headers }: IncomingMessage) => headers.upgrade?.toLowerCase() === 'websocket',
  };
  const server = createServer(settings);
  // Offsite counts them: Node would drop those above its limit and pass on the rest.
  server.maxHeadersCount = 0;
  const refuseUpgrade = (_asked: IncomingMessage, client: Duplex) => {
    client.resume();
    client.end(plainAnswer(426, 'The model is reached by plain HTTP requests; WebSockets are not carried.'));
  };
  // Node's own answer would be lost with the connection.
  const refuseUnreadable = (error: NodeJS.ErrnoException, client: Duplex) => {
    const status = error.code === 'HPE_HEADER_OVERFLOW' ? 431 : 400;
    if (client.writable) client.end(plainAnswer(status, 'The request cannot be read.'));
    else client.destroy();
  };
  const connect = (asked: IncomingMessage, client: Duplex, first: Buffer) =>
    handler.connect(asked, client, first);
  return listenTo(server, { request, connect, upgrade: refuseUpgrade, clientError: refuseUnreadable }, end);
}

function refusal({ rawHeaders }: IncomingMessage, underWay: number): [number, string] | undefined {
  if (rawHeaders.length > 2 * relayTraffic.count.headers)
    return [431, `A request may have ${relayTraffic.count.headers} headers.\n`];
  if (underWay >= relayTraffic.count.requests)
    return [503, `There are ${relayTraffic.count.requests} requests under way.\n`];
  return undefined;
}

/** What a relay's end says of an error that nobody expected. */
function defect(cause: unknown): OffsiteError {
  const place = cause instanceof Error ? /\n\s+(at .*)/.exec(cause.stack ?? '')?.[1] : undefined;
  return new OffsiteError(
    `what its sandbox sent met a defect of Offsite: ${[messageOf(cause), place].filter(Boolean).join(', ')}`,
    { code: 'RELAY_DEFECT', kind: 'infrastructure', hint: 'Please report it, with this message.', cause },
  );
}
