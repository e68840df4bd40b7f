// @ts-check

/**
 * The relay's half in the sandbox's network: each connection to 127.0.0.1 becomes a stream of one HTTP/2 session over stdin and stdout, at whose
 * other end serve.ts reads what is said. It runs by itself, as the text of one `node --eval`, so it needs nothing but Node's own modules. It is
 * plain JavaScript of the old kind because its start is waited for: as a module it would take 10 ms more to listen than these 45, with
 * types to remove another 40.
 */
const { connect, constants } = require('node:http2');
const { createServer, Socket } = require('node:net');
const { Duplex } = require('node:stream');

/** `window` is of bytes on their way to a client that does not read. */
const [port = 0, maxConnections = 0, window = 0] = process.argv.slice(-3).map(Number);

/** @type {import('node:http2').ClientHttp2Session} */
let gateway;

const server = createServer({ allowHalfOpen: true, noDelay: true }, carry);
server.maxConnections = maxConnections;
// The port is open before the first frame goes out, by which the gateway knows.
server.listen({ port, host: '127.0.0.1', backlog: 1024 }, () => {
  gateway = openSession();
});

/**
 * Carries the bytes of one connection, both ways and as they come. Either end can finish by itself; where one breaks, so does the other.
 *
 * @param {Socket} socket
 */
function carry(socket) {
  const stream = gateway.request({ ':method': 'CONNECT', ':authority': 'gateway' }, { endStream: false });
  // Both are always followed by 'close'.
  socket.on('error', () => undefined);
  stream.on('error', () => undefined);
  socket.on('close', () => {
    if (!socket.readableEnded || !socket.writableFinished) stream.close(constants.NGHTTP2_CANCEL);
  });
  stream.on('close', () => {
    if (stream.rstCode === constants.NGHTTP2_NO_ERROR) socket.destroySoon();
    else socket.resetAndDestroy();
  });
  socket.pipe(stream);
  pipeTogether(stream, socket);
}

/**
 * As `pipe` does, but that what was read at once is written at once: a frame of HTTP/2 has no more than 16 KiB, and several come together.
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

function openSession() {
  const session = connect('http://gateway', {
    createConnection: () => new StandardStreams(),
    settings: { enablePush: false, initialWindowSize: window },
    // Megabytes. Above it Node would refuse new streams; the container's own limit is the one that counts.
    maxSessionMemory: 1024,
  });
  session.once('connect', () => session.setLocalWindowSize(2 ** 30));
  // The gateway's end is the sandbox's, or another relay's beginning; either way nothing is left to do here.
  session.on('error', (error) => process.stderr.write(`${error}\n`));
  session.on('close', () => process.exit(0));
  return session;
}

/** `process.stdout` would not do: its writes to a pipe may block. */
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
