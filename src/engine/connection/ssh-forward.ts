import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { backoff } from '../../backoff.ts';
import type { Clock } from '../../clock.ts';
import { startDeadline } from '../../deadline.ts';
import { isClosedSocket, type SshFailure, type SshTarget, sshFailure } from './ssh-failure.ts';
import { type SshProcess, startSsh } from './ssh-process.ts';
import { connectionWaits } from './waits.ts';

export interface ReachOptions {
  clock: Clock;
  env: NodeJS.ProcessEnv;
  signal: AbortSignal | undefined;
}

const readyWithinMs = 30_000;
const pollMs = 50;
const saysWithinMs = 500;

export interface SshForward {
  socketPath: string;
  /** Why a request failed, if `ssh` says that it cannot open the engine's socket on the other machine. */
  failure(): Promise<SshFailure | undefined>;
  close(): Promise<void>;
}

/**
 * Forwards a local socket to the engine's with the system's own `ssh`, so the user's ssh settings, keys and
 * ssh-agent apply. One connection carries all requests: a connection per request would soon hit the server's
 * MaxStartups. The URL is `ssh://user@host:port/path/to/docker.sock`, or has no path for the default socket.
 *
 * If the forward breaks later, it is set up again under the same socket until `close` is called. Requests
 * fail meanwhile.
 */
export async function forwardOverSsh(url: URL, { clock, env, signal }: ReachOptions): Promise<SshForward> {
  // Directly in /tmp, because a socket's path is limited to about 100 bytes.
  const folder = await mkdtemp(join(tmpdir(), 'offsite-ssh-'));
  const socketPath = join(folder, 'docker.sock');
  const socket = url.pathname.length > 1 ? decodeURIComponent(url.pathname) : '/var/run/docker.sock';
  const target = { url, socket };
  const start = () => startSsh(sshArguments(target, socketPath), folder, env);
  const closed = new AbortController();
  let ssh = start();
  try {
    await ready(ssh, { socketPath, target, clock, signal });
  } catch (error) {
    ssh.end();
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
  const keepUp = async () => {
    let failures = 0;
    for (let readyAt: number | undefined = clock.now(); ; ) {
      await ssh.ended;
      if (closed.signal.aborted) return;
      const lasted = readyAt !== undefined && clock.now() - readyAt >= connectionWaits.longest;
      failures = lasted ? 0 : failures + 1;
      if (!lasted) await clock.sleep(backoff(failures, connectionWaits, Math.random), closed.signal);
      ssh = start();
      readyAt = await ready(ssh, { socketPath, target, clock, signal: closed.signal }).then(
        () => clock.now(),
        () => undefined,
      );
      // An `ssh` that is not ready may be stuck.
      if (readyAt === undefined) ssh.end();
    }
  };
  const kept = keepUp().catch((error: unknown) => {
    if (!closed.signal.aborted) throw error;
  });
  return {
    socketPath,
    async failure() {
      // `ssh` prints its message at about the time when the request fails.
      for (let waited = 0; waited < saysWithinMs; waited += pollMs) {
        if (isClosedSocket(ssh.said)) return sshFailure(target, ssh.said);
        await clock.sleep(pollMs, signal);
      }
      return undefined;
    },
    async close() {
      closed.abort();
      ssh.end();
      await kept;
      ssh.end();
      await ssh.ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

interface Awaited {
  socketPath: string;
  target: SshTarget;
  clock: Clock;
  signal: AbortSignal | undefined;
}

/**
 * Resolves when the socket accepts connections. Throws an `ENGINE_CONNECTION` failure if `ssh` ends first.
 */
async function ready(ssh: SshProcess, { socketPath, target, clock, signal }: Awaited): Promise<void> {
  using settled = new DisposableStack();
  const deadline = settled.use(startDeadline(clock, readyWithinMs, signal));
  const enough = new AbortController();
  settled.defer(() => enough.abort());
  const accepts = (async () => {
    while (!(await accepted(socketPath))) await clock.sleep(pollMs, enough.signal);
  })();
  accepts.catch(() => undefined);
  const first = await Promise.race([accepts, ssh.ended, deadline.reached]);
  if (first === 'canceled') throw signal?.reason;
  if (first === 'timed-out') throw sshFailure(target, `not ready after ${readyWithinMs / 1000} s`);
  if (first !== undefined) throw sshFailure(target, first.complaint, first.cause);
}

function sshArguments({ url, socket }: SshTarget, socketPath: string): string[] {
  const user = decodeURIComponent(url.username);
  return [
    '-N',
    ...['-o', 'ExitOnForwardFailure=yes'],
    ...['-o', 'ServerAliveInterval=15'],
    // A killed ssh leaves its socket behind, at the path where the next ssh makes its own.
    ...['-o', 'StreamLocalBindUnlink=yes'],
    // ssh must not ask questions: nobody may be there to answer.
    ...['-o', 'BatchMode=yes'],
    ...['-L', `${socketPath}:${socket}`],
    ...(url.port === '' ? [] : ['-p', url.port]),
    ...(user === '' ? [] : ['-l', user]),
    '--',
    url.hostname,
  ];
}

function accepted(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(socketPath);
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}
