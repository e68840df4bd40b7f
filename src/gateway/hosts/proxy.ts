import { request as httpRequest, type IncomingMessage } from 'node:http';
import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { messageOf } from '../../offsite-error.ts';
import { answerText, pump } from '../answer.ts';
import { clientGone } from '../client-gone.ts';
import { endToEnd, toHost } from '../end-to-end-headers.ts';
import type { HostConnection } from '../gateway.ts';
import { Refusal } from '../refusal.ts';
import type { InFlight, SessionRecord } from '../session-record.ts';
import { readAuthority } from './authority.ts';
import { type ReachParts, reach } from './reach.ts';

export interface ProxyParts extends ReachParts {
  record: SessionRecord;
}

/** Carries one CONNECT, or one request with an absolute address, to a host of the allow-list. Never rejects; see {@link HostConnection}. */
export async function proxy(
  parts: ProxyParts,
  route: { to: 'tunnel' | 'proxy'; authority: string },
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
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
    // A stream that came to its end closes too, at times before it says that it has finished.
    if (stream.rstCode !== constants.NGHTTP2_NO_ERROR || !stream.writableFinished)
      stopping.abort(clientGone());
  };
  const connection: HostConnection = {
    host: route.authority.slice(0, 300),
    port: 0,
    startedAt: clock.now(),
    finishedAt: 0,
    sentBytes: 0,
    receivedBytes: 0,
    trouble: undefined,
  };
  let socket: Socket | undefined;
  record.begin(running);
  stream.once('close', gone);
  try {
    const authority = readAuthority(route.authority, route.to === 'proxy' ? 80 : undefined);
    if (!authority) throw new Refusal(400, 'AUTHORITY_INVALID', 'the request names no host and port');
    Object.assign(connection, { host: authority.host, port: authority.port });
    socket = await reach(parts, authority, stopping.signal);
    if (route.to === 'tunnel') await tunnel(stream, socket, stopping.signal);
    else await pass(stream, headers, socket, stopping.signal);
  } catch (error) {
    connection.trouble = messageOf(stopping.signal.aborted ? stopping.signal.reason : error);
    answerText(stream, error);
  } finally {
    stream.off('close', gone);
    connection.sentBytes = socket?.bytesWritten ?? 0;
    connection.receivedBytes = socket?.bytesRead ?? 0;
    connection.finishedAt = clock.now();
    socket?.destroy();
    record.addConnection(connection);
    record.end(running);
    settle();
  }
}

/** Bytes both ways, until both ends are done or one breaks. */
async function tunnel(stream: ServerHttp2Stream, socket: Socket, signal: AbortSignal): Promise<void> {
  stream.respond({ ':status': 200 });
  const other: Duplex = socket;
  await Promise.all([pipeline(stream, other, { signal }), pipeline(other, stream, { signal })]);
}

/** One plain request. A redirect is its client's business: it asks again, and is judged again. */
async function pass(
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  socket: Socket,
  signal: AbortSignal,
): Promise<void> {
  const authority = headers[':authority'] ?? '';
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const onward = httpRequest({
    createConnection: () => socket,
    method: headers[':method'] ?? 'GET',
    path: headers[':path'] ?? '/',
    headers: { ...toHost(headers), host: authority, connection: 'close' },
    signal,
  });
  onward.once('response', resolve);
  // Once answered, what breaks it shows in the answer.
  onward.on('error', reject);
  // Not a pipeline: that would destroy the stream by which a failure is answered.
  stream.pipe(onward);
  const answer = await promise;
  stream.respond({ ':status': answer.statusCode ?? 502, ...Object.fromEntries(endToEnd(answer.headers)) });
  await pump(answer, stream, signal);
}
