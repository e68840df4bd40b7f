// @ts-check

/**
 * The relay's half in the sandbox's network: HTTP/1.1 on 127.0.0.1, carried as HTTP/2 over stdin and stdout to the gateway. It
 * runs by itself, as the text of one `node --eval`, so it needs nothing but Node's own modules. It is plain JavaScript of the old kind because its
 * start is waited for: as a module it would take 10 ms more to listen than these 45, with types to remove another 40. relay.ts says what the
 * gateway sees.
 */
const { createServer, STATUS_CODES } = require('node:http');
const { connect, constants } = require('node:http2');
const { Socket } = require('node:net');
const { Duplex } = require('node:stream');

/**
 * @import { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
 * @import { ClientHttp2Session, ClientHttp2Stream, OutgoingHttpHeaders } from 'node:http2'
 */

const port = Number(process.argv.at(-1));
const maxHeaders = 256;
/**
 * Clients that send or ask for much and then stall make this process hold some 300 KB each, of which the windows are most. With as many
 * connections as these it stays within the memory that it is given.
 */
const maxConnections = 512;
const answerWindow = 256 * 1024;
/** Names that belong to one connection; HTTP/2 has no place for them. `expect` was answered here already. */
const hopByHop = new Set([
  'connection',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'x-offsite-proxy',
]);

const server = createServer(
  {
    insecureHTTPParser: false,
    maxHeaderSize: 32 * 1024,
    highWaterMark: 16 * 1024,
    headersTimeout: 60_000,
    // A model may take its time for any part of an exchange, and who keeps a connection decides how long.
    requestTimeout: 0,
    keepAliveTimeout: 0,
    // Other protocols that a client offers to switch to are no reason to refuse its request.
    shouldUpgradeCallback: ({ headers }) => headers.upgrade?.toLowerCase() === 'websocket',
  },
  carry,
);
// Counted by us: Node would drop what is above its limit, and pass on the rest.
server.maxHeadersCount = 0;
server.maxConnections = maxConnections;
server.on('connect', tunnel);
server.on('upgrade', (_request, socket) => {
  socket.on('error', () => socket.destroy()).resume();
  socket.end(refusal(426, 'The model is reached by plain HTTP requests; WebSockets are not carried.'));
});

/** @type {ClientHttp2Session} */
let gateway;
// The port is open before the first frame goes out, by which the gateway knows.
server.listen({ port, host: '127.0.0.1', backlog: 1024 }, () => {
  gateway = openSession();
});

function openSession() {
  const session = connect('http://model', {
    createConnection: () => new StandardStreams(),
    settings: { enablePush: false, initialWindowSize: answerWindow },
    // Megabytes. Above it Node would refuse new streams; the container's own limit is the one that counts.
    maxSessionMemory: 1024,
    maxHeaderListPairs: 2 * maxHeaders,
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

/**
 * Passes one request on, and its answer back, both as they come.
 *
 * @param {IncomingMessage} request
 * @param {ServerResponse} response
 */
function carry(request, response) {
  const head = requestHead(request);
  if (head.refused !== undefined) {
    response.writeHead(head.refused, { connection: 'close', 'content-type': 'text/plain' }).end(head.reason);
    return;
  }
  const { headers } = request;
  const endStream = headers['content-length'] === undefined && headers['transfer-encoding'] === undefined;
  const stream = gateway.request({ ...carried(headers), ...head.fields }, { endStream });
  stream.on('response', ({ ':status': status = 502, ...answered }) => {
    response.writeHead(status, carried(answered));
    // A small body goes out together with its head; a later one does not hold the head back.
    setImmediate(() => response.flushHeaders());
    stream.pipe(response);
  });
  // Always followed by 'close'.
  stream.on('error', () => undefined);
  stream.on('close', () => {
    // Cut short, or never answered: what the client sees must not look whole.
    if (stream.rstCode !== constants.NGHTTP2_NO_ERROR || !response.headersSent) response.destroy();
  });
  response.on('close', () => {
    if (response.writableFinished && request.complete) return;
    stream.close(constants.NGHTTP2_CANCEL);
    // Of an upload that was answered before its end, the rest is read and dropped.
    request.resume();
  });
  if (!endStream) upload(request, stream);
}

/**
 * As `pipe` would, but that the end of a body whose length is known goes out with its last bytes and not after them: for most requests one
 * write instead of two.
 *
 * @param {IncomingMessage} request
 * @param {ClientHttp2Stream} stream
 */
function upload(request, stream) {
  let left = Number(request.headers['content-length'] ?? Infinity);
  request.on('data', (chunk) => {
    // What comes after the answer's end is read and dropped.
    if (stream.closed) return;
    left -= chunk.length;
    if (left === 0) stream.end(chunk);
    else if (!stream.write(chunk)) request.pause();
  });
  stream.on('drain', () => request.resume());
  request.on('end', () => stream.end());
}

/**
 * Passes a CONNECT on, and once it is accepted all bytes both ways.
 *
 * @param {IncomingMessage} request
 * @param {Duplex} socket
 * @param {Buffer} first
 */
function tunnel(request, socket, first) {
  socket.on('error', () => socket.destroy());
  const authority = request.url ?? '';
  if (!/^[^\s/@?#]+:\d+$/.test(authority)) {
    socket.end(refusal(400, 'CONNECT takes a host and a port.'));
    return;
  }
  const fields = { ':method': 'CONNECT', ':authority': authority };
  const stream = gateway.request({ ...carried(request.headers), ...fields }, { endStream: false });
  stream.on('response', ({ ':status': status = 502, ...headers }) => {
    const accepted = status >= 200 && status < 300;
    socket.write(answerHead(status, accepted ? {} : { ...carried(headers), connection: 'close' }));
    if (accepted) {
      if (first.length > 0) stream.write(first);
      socket.pipe(stream);
    }
    stream.pipe(socket);
  });
  stream.on('error', () => undefined);
  stream.on('close', () => {
    if (stream.rstCode === constants.NGHTTP2_NO_ERROR) socket.end();
    else socket.destroy();
  });
  socket.on('close', () => stream.close(constants.NGHTTP2_CANCEL));
}

/**
 * What the gateway is told beside the headers: whether for a model, or for a host beyond.
 *
 * @param {IncomingMessage} request
 * @returns {{ refused?: undefined; fields: OutgoingHttpHeaders } | { refused: number; reason: string }}
 */
function requestHead({ method = 'GET', url = '', rawHeaders }) {
  if (rawHeaders.length > 2 * maxHeaders)
    return { refused: 431, reason: `A request may have ${maxHeaders} headers.\n` };
  const fields = { ':method': method, ':scheme': 'http' };
  if (url.startsWith('/')) return { fields: { ...fields, ':authority': 'model', ':path': url } };
  const absolute = /^http:\/\/([^/?#@\s]+)([^#]*)/i.exec(url);
  const [, authority = '', rest = ''] = absolute ?? [];
  if (!absolute) return { refused: 400, reason: 'The target is neither a path nor an http:// URL.\n' };
  const path = rest.startsWith('/') ? rest : `/${rest}`;
  // Clients that were told of the proxy, but not to leave this address alone.
  const ours = authority === `127.0.0.1:${port}` || authority.toLowerCase() === `localhost:${port}`;
  if (ours) return { fields: { ...fields, ':authority': 'model', ':path': path } };
  return { fields: { ...fields, ':authority': authority, ':path': path, 'x-offsite-proxy': '1' } };
}

/**
 * End-to-end headers only: those named by `connection` are hop-by-hop too.
 *
 * @param {IncomingHttpHeaders} headers
 * @returns {OutgoingHttpHeaders}
 */
function carried(headers) {
  const named = headers.connection?.toLowerCase().split(/\s*,\s*/) ?? [];
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => !hopByHop.has(name) && !named.includes(name)),
  );
}

/**
 * @param {number} status
 * @param {string} reason
 */
function refusal(status, reason) {
  const body = `${reason}\n`;
  const headers = { 'content-type': 'text/plain', 'content-length': body.length, connection: 'close' };
  return `${answerHead(status, headers)}${body}`;
}

/**
 * @param {number} status
 * @param {OutgoingHttpHeaders} headers
 */
function answerHead(status, headers) {
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    [value ?? []].flat().map((each) => `${name}: ${each}\r\n`),
  );
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${lines.join('')}\r\n`;
}
