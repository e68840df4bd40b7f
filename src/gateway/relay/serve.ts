import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { performServerHandshake, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import type { Socket, Server as SocketServer } from 'node:net';
import { Duplex } from 'node:stream';
import { type EndTraffic, listenTo } from '../../base/foreign-traffic.ts';
import { infrastructureError, messageOf, type OffsiteError } from '../../base/offsite-error.ts';
import { relayTraffic } from '../../bounds/sandbox.ts';
import { answerLast, dropRest, type RelayHandler } from './relay.ts';

const noLimit = 2 ** 30;

/**
 * This process's end of a sidecar's standard streams: reads the HTTP/1.1 on the sandbox's connections, and
 * calls `handler` for each request. The session ends with the streams, and then destroys the requests in
 * flight. It also ends, with an `error`, if a request triggers a defect in Offsite, so that only this sandbox
 * fails. What connects to `shared` is served too, until the session ends.
 */
export function serveRelay(stdio: Duplex, handler: RelayHandler, shared?: SocketServer): ServerHttp2Session {
  const end = (error: unknown) => session.destroy(defect(error));
  const over = () => {
    session.destroy();
    stdio.destroy();
  };
  // Node also listens for 'end', and then ends the other direction. While that waits for the engine, any
  // write of the session, even one that closes it, fails an assertion in Node, which would end this process.
  listenTo(stdio, { end: over }, end);
  const session = performServerHandshake(stdio, {
    settings: {
      maxConcurrentStreams: relayTraffic.count.connections,
      initialWindowSize: relayTraffic.bytes.unreadRequest,
    },
    // Megabytes. Above this, Node would end the session, so one hostile client could end the connections of
    // all others. The windows limit the memory.
    maxSessionMemory: 4096,
    maxSessionInvalidFrames: noLimit,
    maxSessionRejectedStreams: noLimit,
    streamResetBurst: noLimit,
    streamResetRate: noLimit,
  });
  const server = readingServer(handler, end);
  session.setLocalWindowSize(noLimit);
  const sockets = new Set<Socket>();
  const accept = (socket: Socket) => {
    listenTo(socket, { close: () => sockets.delete(socket) }, end);
    if (session.destroyed) return void socket.destroy();
    sockets.add(socket);
    // The relay takes an end for a break if this side does not read any more, so the client closes first.
    socket.destroySoon = () => {
      socket.end();
      dropRest(socket);
    };
    server.emit('connection', socket);
    socket.resume();
  };
  if (shared) listenTo(shared, { connection: accept }, end);
  listenTo(
    session,
    {
      stream(stream: ServerHttp2Stream) {
        listenTo(stream, {}, end);
        // It may already be reset.
        if (stream.destroyed || stream.closed) return;
        const connection = new Connection(stream, end);
        stream.respond({ ':status': 200 });
        server.emit('connection', connection);
      },
      close: () => {
        for (const socket of sockets) socket.destroy();
      },
      error: () => session.destroy(),
    },
    end,
  );
  listenTo(stdio, { error: over, close: over }, end);
  if (stdio.destroyed) over();
  // Node tells nothing of a session over streams that closed before it began.
  if (stdio.closed) process.nextTick(() => session.emit('close'));
  return session;
}

/**
 * An HTTP server that does not listen. It has no time limits: a model may take long for any part of an
 * exchange, and connections are few.
 */
function readingServer(handler: RelayHandler, end: EndTraffic): Server {
  let inFlight = 0;
  const request = (asked: IncomingMessage, response: ServerResponse): unknown => {
    // 'close' of the response always follows, and handlers listen for that.
    listenTo(asked, {}, end);
    const [status, reason] = refusal(asked, inFlight) ?? [];
    if (status !== undefined) {
      listenTo(response, {}, end);
      response.writeHead(status, { connection: 'close', 'content-type': 'text/plain' }).end(reason);
      return undefined;
    }
    inFlight += 1;
    const close = () => {
      inFlight -= 1;
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
    // If a client offers to switch to another protocol, do not refuse its request.
    shouldUpgradeCallback: ({ headers }: IncomingMessage) => headers.upgrade?.toLowerCase() === 'websocket',
  };
  const server = createServer(settings);
  // Offsite counts headers itself: Node would drop those above its limit and pass on the rest.
  server.maxHeadersCount = 0;
  const refuseUpgrade = (_asked: IncomingMessage, client: Duplex) =>
    answerLast(client, 426, 'The model is reached by plain HTTP requests; WebSockets are not carried.');
  // Node's own answer would be lost when the connection closes.
  const refuseUnreadable = (error: NodeJS.ErrnoException, client: Duplex) => {
    const status = error.code === 'HPE_HEADER_OVERFLOW' ? 431 : 400;
    if (client.writable) answerLast(client, status, 'The request cannot be read.');
    // After an answer, the relay would take a close for a break.
    else if (!client.writableEnded) client.destroy();
  };
  const connect = (asked: IncomingMessage, client: Duplex, first: Buffer) =>
    handler.connect(asked, client, first);
  return listenTo(server, { request, connect, upgrade: refuseUpgrade, clientError: refuseUnreadable }, end);
}

function refusal({ rawHeaders }: IncomingMessage, inFlight: number): [number, string] | undefined {
  if (rawHeaders.length > 2 * relayTraffic.count.headers)
    return [431, `A request may have at most ${relayTraffic.count.headers} headers.\n`];
  if (inFlight >= relayTraffic.count.requests)
    return [503, `There are already ${relayTraffic.count.requests} requests in flight.\n`];
  return undefined;
}

/** The error for a defect in Offsite, shown when the relay ends. */
function defect(cause: unknown): OffsiteError {
  const place = cause instanceof Error ? /\n\s+(at .*)/.exec(cause.stack ?? '')?.[1] : undefined;
  const what = [messageOf(cause), place].filter(Boolean).join(', ');
  return infrastructureError(
    'RELAY_DEFECT',
    `a request of its sandbox triggered a defect in Offsite: ${what}`,
    { hint: 'Please report this message.', cause },
  );
}

/**
 * A connection of the sandbox over the engine, for Node's HTTP server. A stream of HTTP/2 itself would work,
 * except for a bug in Node 24: if a string and bytes are written together, such as the head of an answer and
 * its body, Node frees the string's memory before it is sent. This class writes only bytes.
 */
class Connection extends Duplex {
  readonly #stream: ServerHttp2Stream;

  constructor(stream: ServerHttp2Stream, end: EndTraffic) {
    super();
    this.#stream = stream;
    const data = (chunk: Buffer) => {
      if (!this.push(chunk)) stream.pause();
    };
    // 'close' always follows an error.
    listenTo(stream, { data, end: () => this.push(null), close: () => this.destroy() }, end);
    listenTo(this, {}, end);
  }

  override _read(): void {
    this.#stream.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#stream.write(chunk, done);
  }

  override _writev(chunks: { chunk: Buffer }[], done: (error?: Error | null) => void): void {
    this.#stream.cork();
    const last = chunks.length - 1;
    for (const [index, { chunk }] of chunks.entries())
      this.#stream.write(chunk, index === last ? done : undefined);
    this.#stream.uncork();
  }

  override _final(done: () => void): void {
    this.#stream.end(done);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#stream.destroy(error ?? undefined);
    done(error);
  }
}
