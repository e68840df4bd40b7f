// @ts-check

/**
 * The part of the relay in the sandbox's network: each connection to 127.0.0.1 is carried over a socket that
 * the gateway shares. Where it shares none, it becomes a stream of one HTTP/2 session over stdin and stdout,
 * and serve.ts reads the other end. This runs as the text of one `node --eval`, so it uses only Node's own
 * modules. It is CommonJS without types, because trials wait for its start: as a module it would take 10 ms
 * more, and with types to strip another 40. HTTP/2 takes 25 ms to load, as long as the rest.
 */
const { existsSync, writeSync } = require('node:fs');
const { connect: connectTo, createServer, Socket } = require('node:net');
const { Duplex } = require('node:stream');

/** `window`: bytes in flight to a client that does not read. */
const [port = 0, maxConnections = 0, window = 0] = process.argv.slice(-4, -1).map(Number);
const gatewaySocket = process.argv.at(-1) ?? '';

/** @type {import('node:http2').ClientHttp2Session | undefined} */
let gateway;
/** @type {StandardStreams} */
let streams;

const server = createServer({ allowHalfOpen: true, noDelay: true }, carry);
server.maxConnections = maxConnections;
server.listen({ port, host: '127.0.0.1', backlog: 1024 }, () => {
  streams = new StandardStreams();
  // The gateway waits for this word: see sidecar.ts.
  writeSync(2, 'listening\n');
  if (!existsSync(gatewaySocket)) gateway = openSession(streams);
});

/**
 * Carries one connection to the socket that the gateway shares with this container. Where there is none, or
 * nobody hears there, in the session.
 *
 * @param {Socket} socket
 */
function carry(socket) {
  // 'close' always follows, also below.
  socket.on('error', () => undefined);
  const shared = connectTo({ path: gatewaySocket, allowHalfOpen: true });
  const inSession = () => carryInSession(socket);
  shared.once('error', inSession);
  shared.once('connect', () => {
    shared.off('error', inSession).on('error', () => undefined);
    join(socket, shared);
  });
}

/**
 * Carries the bytes of one connection in both directions as they arrive. Each end can finish separately; if
 * one breaks, so does the other.
 *
 * @param {Socket} socket
 * @param {Socket} shared
 */
function join(socket, shared) {
  socket.on('close', () => shared.destroy());
  if (socket.destroyed) return void shared.destroy();
  shared.on('close', () => {
    if (socket.readableEnded && socket.writableEnded) socket.destroySoon();
    else socket.resetAndDestroy();
  });
  socket.pipe(shared);
  shared.pipe(socket, { end: false });
  // Both an end and a break look like an end here. But after an end the gateway still reads: if it broke off,
  // to write even nothing fails.
  shared.on('end', () => {
    if (shared.writableEnded) socket.end();
    else shared.write('', (error) => (error ? socket.resetAndDestroy() : socket.end()));
  });
}

/**
 * The same over the engine.
 *
 * @param {Socket} socket
 */
function carryInSession(socket) {
  const { NGHTTP2_CANCEL, NGHTTP2_NO_ERROR } = require('node:http2').constants;
  gateway ??= openSession(streams);
  const stream = gateway.request({ ':method': 'CONNECT', ':authority': 'gateway' }, { endStream: false });
  stream.on('error', () => undefined);
  socket.on('close', () => {
    if (!socket.readableEnded || !socket.writableFinished) stream.close(NGHTTP2_CANCEL);
  });
  stream.on('close', () => {
    if (stream.rstCode === NGHTTP2_NO_ERROR) socket.destroySoon();
    else socket.resetAndDestroy();
  });
  socket.pipe(stream);
  pipeTogether(stream, socket);
}

/**
 * Like `pipe`, but writes everything that arrived together at once: a frame of HTTP/2 has at most 16 KiB, and
 * several arrive together.
 *
 * @param {import('node:http2').ClientHttp2Stream} stream
 * @param {Socket} socket
 */
function pipeTogether(stream, socket) {
  stream.on('data', (chunk) => {
    if (socket.writableCorked === 0) {
      socket.cork();
      process.nextTick(() => socket.uncork());
    }
    if (!socket.write(chunk)) stream.pause();
  });
  socket.on('drain', () => stream.resume());
  stream.on('end', () => socket.end());
}

/** @param {StandardStreams} streams */
function openSession(streams) {
  const session = require('node:http2').connect('http://gateway', {
    createConnection: () => streams,
    settings: { enablePush: false, initialWindowSize: window },
    // Megabytes. Above this Node would refuse new streams; the container's own limit should apply first.
    maxSessionMemory: 1024,
  });
  session.once('connect', () => session.setLocalWindowSize(2 ** 30));
  // If the gateway ends, either the sandbox ends too or another relay starts; nothing is left to do here.
  session.on('error', (error) => process.stderr.write(`${error}\n`));
  session.on('close', () => process.exit(0));
  return session;
}

/** Used instead of `process.stdout`, whose writes to a pipe may block. */
class StandardStreams extends Duplex {
  #input = new Socket({ fd: 0, readable: true, writable: false });
  #output = new Socket({ fd: 1, readable: false, writable: true });

  constructor() {
    super();
    this.#input.on('data', (chunk) => {
      if (!this.push(chunk)) this.#input.pause();
    });
    this.#input.on('end', () => process.exit(0));
    this.#output.on('error', () => process.exit(0));
  }

  /** @override */
  _read() {
    this.#input.resume();
  }

  /**
   * @override
   * @param {Buffer} chunk
   * @param {BufferEncoding} _encoding
   * @param {(error?: Error | null) => void} done
   */
  _write(chunk, _encoding, done) {
    this.#output.write(chunk, done);
  }

  /**
   * @override
   * @param {{ chunk: Buffer }[]} chunks
   * @param {(error?: Error | null) => void} done
   */
  _writev(chunks, done) {
    this.#output.cork();
    const last = chunks.length - 1;
    for (const [index, { chunk }] of chunks.entries())
      this.#output.write(chunk, index === last ? done : undefined);
    this.#output.uncork();
  }
}
