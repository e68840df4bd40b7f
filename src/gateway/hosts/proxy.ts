import { lookup } from 'node:dns/promises';
import {
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import { connect, isIP, type Socket } from 'node:net';
import type { Duplex, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Clock } from '../../base/clock.ts';
import { abortable, startDeadline } from '../../base/deadline.ts';
import { infrastructureError, messageOf } from '../../base/offsite-error.ts';
import { hostConnections } from '../../bounds/sandbox.ts';
import type { HostConnection } from '../../record/model-account.ts';
import {
  type AllowList,
  type Authority,
  canonical,
  hostHeader,
  isPublic,
  readAuthority,
} from '../../suite/hosts/host-pattern.ts';
import { answerText, errorForClient, pass } from '../answer.ts';
import { endToEnd, toHost } from '../end-to-end-headers.ts';
import { answerLast } from '../relay/relay.ts';
import { clientGone, GatewayRefusal, type Share } from '../room.ts';
import type { InFlight, SessionRecord } from '../session-record.ts';

export interface ProxyParts extends ReachParts {
  record: SessionRecord;
  share: Share;
}

/** Forwards one plain request to a host of the allow-list. Never rejects; see {@link HostConnection}. */
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

/** Opens a tunnel for one CONNECT to a host of the allow-list. Never rejects; see {@link HostConnection}. */
export async function proxyTunnel(
  parts: ProxyParts,
  { url: authority = '' }: IncomingMessage,
  stream: Duplex,
  first: Buffer,
): Promise<void> {
  // Once both ends are finished, the stream may close before it emits 'finish'.
  const client = { stream, isDone: () => stream.readableEnded };
  let accepted = false;
  try {
    await connected(parts, { authority, usualPort: undefined }, client, async (socket, { signal }) => {
      accepted = true;
      stream.write('HTTP/1.1 200 OK\r\n\r\n');
      if (first.length > 0) socket.write(first);
      const other: Duplex = socket;
      // Copies bytes in both directions, until both ends are done or one breaks.
      await Promise.all([pipeline(stream, other, { signal }), pipeline(other, stream, { signal })]);
    });
  } catch (error) {
    const { status, message } = errorForClient(error);
    if (accepted) stream.destroy(new Error('the tunnel was broken off'));
    else answerLast(stream, status, message);
  }
}

/**
 * Connects to the requested host while `carry` runs. Rejects as `carry` does; the connection is recorded in
 * any case.
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
    failure: undefined,
  };
  let socket: Socket | undefined;
  using hold = parts.share.hold();
  record.begin(running);
  client.stream.once('close', gone);
  try {
    const authority = readAuthority(asked.authority, asked.usualPort);
    if (!authority) throw new GatewayRefusal(400, 'AUTHORITY_INVALID', 'the request names no host and port');
    Object.assign(connection, { host: authority.host, port: authority.port });
    await hold.resize(hostConnections.bytes.held, stopping.signal);
    socket = await reach(parts, authority, stopping.signal);
    await carry(socket, stopping, authority);
  } catch (error) {
    connection.failure = messageOf(stopping.signal.aborted ? stopping.signal.reason : error);
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

/** Returns a redirect to the client: if the client follows it, that request is checked again. */
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
  // After the answer begins, a failure shows in the answer.
  onward.on('error', reject);
  // Do not use `pipeline`: it would destroy the request, and with it the connection that carries the error
  // answer.
  request.pipe(onward);
  const answer = await promise;
  const { statusCode: status = 502, headers } = answer;
  await pass({ status, headers: Object.fromEntries(endToEnd(headers)), body: answer }, response, ending);
}

/**
 * How the forwarded request declares where its body ends. Does not use the client's headers as they are,
 * because some are hop-by-hop: the host would read an undeclared body as another request.
 */
function framing({ 'content-length': length, 'transfer-encoding': coding }: IncomingHttpHeaders) {
  if (coding !== undefined) return { 'transfer-encoding': 'chunked' };
  return length === undefined ? {} : { 'content-length': length };
}

interface ReachParts {
  allowed: AllowList;
  network: Network;
  clock: Clock;
}

/**
 * Connects to a host of the allow-list. Looks up its name once, here, and connects to an address that was
 * found then and checked: a later change of the DNS record does not matter. Throws a {@link GatewayRefusal}:
 * 403 if the host may not be reached, 502 if it cannot.
 */
async function reach(
  { allowed, network, clock }: ReachParts,
  authority: Authority,
  signal: AbortSignal,
): Promise<Socket> {
  const { host, port } = authority;
  if (!allowed.allows(authority)) {
    throw new GatewayRefusal(403, 'HOST_NOT_ALLOWED', `this sandbox may not reach ${host} port ${port}`, {
      hint: 'Name it under hosts of the sandbox in offsite.yaml.',
    });
  }
  using limit = startDeadline(
    clock,
    hostConnections.time.reach,
    [signal],
    () => new GatewayRefusal(504, 'HOST_TIMEOUT', `${host} port ${port} did not answer`),
  );
  const found = authority.address ? [host] : await resolve(network, host, limit.signal);
  const named = (address: string) => allowed.allows({ host: canonical(address), port, address: true });
  const permitted = found.filter((address) => isIP(address) !== 0 && (isPublic(address) || named(address)));
  if (permitted.length === 0) {
    throw new GatewayRefusal(
      403,
      'ADDRESS_NOT_ALLOWED',
      `${host} resolves to an address that is not public`,
      {
        hint: 'Name private, loopback or link-local addresses under hosts of the sandbox in offsite.yaml.',
      },
    );
  }
  const failures: string[] = [];
  for (const address of permitted) {
    try {
      return await network.connect({ address, port }, limit.signal);
    } catch (error) {
      limit.signal.throwIfAborted();
      failures.push(messageOf(error));
    }
  }
  throw new GatewayRefusal(502, 'HOST_UNREACHABLE', failures.join('; '));
}

async function resolve(network: Network, host: string, signal: AbortSignal): Promise<string[]> {
  signal.throwIfAborted();
  try {
    return await abortable(network.lookup(host), signal);
  } catch (cause) {
    signal.throwIfAborted();
    throw new GatewayRefusal(502, 'HOST_NOT_FOUND', `the name ${host} cannot be looked up`, { cause });
  }
}

/** Reaches named hosts. Passed in, so that tests send no packets off the machine. */
export interface Network {
  /** All addresses of a name. */
  lookup(host: string): Promise<string[]>;
  /** Resolves with a socket that is connected to exactly this address. */
  connect(to: { address: string; port: number }, signal: AbortSignal): Promise<Socket>;
}

export const hostNetwork: Network = {
  async lookup(host) {
    const found = await lookup(host, { all: true, order: 'verbatim' });
    return found.map(({ address }) => address);
  },
  async connect({ address, port }, signal) {
    signal.throwIfAborted();
    // One end may finish sending before the other.
    const socket = connect({ host: address, port, allowHalfOpen: true, noDelay: true });
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    socket.once('connect', resolve);
    // An error may come before the caller listens; the caller listens for 'close'.
    socket.on('error', () => undefined).once('error', reject);
    try {
      await abortable(promise, signal);
      return socket;
    } catch (cause) {
      socket.destroy();
      throw infrastructureError('HOST_UNREACHABLE', `cannot connect to ${address} port ${port}`, { cause });
    } finally {
      socket.off('error', reject);
    }
  },
};
