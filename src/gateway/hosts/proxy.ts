import {
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { hostConnections } from '../../bounds/sandbox.ts';
import type { Clock } from '../../clock.ts';
import { messageOf } from '../../offsite-error.ts';
import { answerText, pass, told } from '../answer.ts';
import { endToEnd, toHost } from '../end-to-end-headers.ts';
import type { HostConnection } from '../gateway.ts';
import { clientGone, Refusal } from '../refusal.ts';
import { plainAnswer } from '../relay/plain-answer.ts';
import type { Share } from '../room.ts';
import type { InFlight, SessionRecord } from '../session-record.ts';
import { type Authority, hostHeader, readAuthority } from './authority.ts';
import { type ReachParts, reach } from './reach.ts';

export interface ProxyParts extends ReachParts {
  record: SessionRecord;
  share: Share;
}

/** Carries one plain request to a host of the allow-list. Never rejects; see {@link HostConnection}. */
export async function proxyRequest(
  parts: ProxyParts,
  target: { authority: string; path: string },
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const client = { stream: response, isDone: () => response.writableFinished };
  try {
    await connected(
      parts,
      { authority: target.authority, usualPort: 80 },
      client,
      (socket, stopping, authority) =>
        carryRequest(request, { authority, path: target.path }, response, socket, {
          stopping,
          clock: parts.clock,
        }),
    );
  } catch (error) {
    answerText(response, error);
  }
}

/** Carries one CONNECT to a host of the allow-list. Never rejects; see {@link HostConnection}. */
export async function proxyTunnel(
  parts: ProxyParts,
  { url: authority = '' }: IncomingMessage,
  stream: Duplex,
  first: Buffer,
): Promise<void> {
  // Once both have said their last, it may close before it says that it has finished.
  const client = { stream, isDone: () => stream.readableEnded };
  let accepted = false;
  try {
    await connected(parts, { authority, usualPort: undefined }, client, async (socket, { signal }) => {
      accepted = true;
      stream.write('HTTP/1.1 200 OK\r\n\r\n');
      if (first.length > 0) socket.write(first);
      const other: Duplex = socket;
      // Bytes both ways, until both ends are done or one breaks.
      await Promise.all([pipeline(stream, other, { signal }), pipeline(other, stream, { signal })]);
    });
  } catch (error) {
    const { status, message } = told(error);
    if (accepted) stream.destroy(new Error('the tunnel was broken off'));
    else stream.end(plainAnswer(status, message));
  }
}

/**
 * Connects to the host that a client asks for, for as long as `carry` takes. Rejects as that does; it is in
 * the record in any case.
 */
async function connected(
  parts: ProxyParts,
  asked: { authority: string; usualPort: number | undefined },
  client: { stream: Writable; isDone(): boolean },
  carry: (socket: Socket, stopping: AbortController, authority: Authority) => Promise<void>,
): Promise<void> {
  const { record, clock } = parts;
  const stopping = new AbortController();
  const { promise: done, resolve: settle } = Promise.withResolvers<void>();
  const running: InFlight = {
    kind: 'connection',
    from: 'sandbox',
    abort: (reason) => stopping.abort(reason),
    done,
  };
  const gone = () => {
    if (!client.isDone()) stopping.abort(clientGone());
  };
  const connection: HostConnection = {
    host: asked.authority.slice(0, 300),
    port: 0,
    startedAt: clock.now(),
    finishedAt: 0,
    sentBytes: 0,
    receivedBytes: 0,
    trouble: undefined,
  };
  let socket: Socket | undefined;
  using hold = parts.share.hold();
  record.begin(running);
  client.stream.once('close', gone);
  try {
    const authority = readAuthority(asked.authority, asked.usualPort);
    if (!authority) throw new Refusal(400, 'AUTHORITY_INVALID', 'the request names no host and port');
    Object.assign(connection, { host: authority.host, port: authority.port });
    await hold.resize(hostConnections.bytes.held, stopping.signal);
    socket = await reach(parts, authority, stopping.signal);
    await carry(socket, stopping, authority);
  } catch (error) {
    connection.trouble = messageOf(stopping.signal.aborted ? stopping.signal.reason : error);
    throw error;
  } finally {
    client.stream.off('close', gone);
    connection.sentBytes = socket?.bytesWritten ?? 0;
    connection.receivedBytes = socket?.bytesRead ?? 0;
    connection.finishedAt = clock.now();
    socket?.destroy();
    record.addConnection(connection);
    record.end(running);
    settle();
  }
}

/** A redirect is the client's business: it asks again, and is judged again. */
async function carryRequest(
  request: IncomingMessage,
  { authority, path }: { authority: Authority; path: string },
  response: ServerResponse,
  socket: Socket,
  ending: { stopping: AbortController; clock: Clock },
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const onward = httpRequest({
    createConnection: () => socket,
    method: request.method,
    path,
    headers: {
      ...toHost(request.headers),
      ...framing(request.headers),
      host: hostHeader(authority, 80),
      connection: 'close',
    },
    signal: ending.stopping.signal,
  });
  onward.once('response', resolve);
  // Once answered, what breaks it shows in the answer.
  onward.on('error', reject);
  // Not a pipeline: that would destroy the request, and with it the connection on which a failure is
  // answered.
  request.pipe(onward);
  const answer = await promise;
  const { statusCode: status = 502, headers } = answer;
  await pass({ status, headers: Object.fromEntries(endToEnd(headers)), body: answer }, response, ending);
}

/**
 * How the onward request says where its body ends. Never left to the client's own headers, some of which are
 * of one hop: a body that nothing announces would be read as a request of its own.
 */
function framing({ 'content-length': length, 'transfer-encoding': coding }: IncomingHttpHeaders) {
  if (coding !== undefined) return { 'transfer-encoding': 'chunked' };
  return length === undefined ? {} : { 'content-length': length };
}
