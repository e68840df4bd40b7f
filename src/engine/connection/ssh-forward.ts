import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '../../clock.ts';
import { startDeadline } from '../../deadline.ts';
import { OffsiteError } from '../../offsite-error.ts';

export interface ReachOptions {
  clock: Clock;
  env: NodeJS.ProcessEnv;
  signal: AbortSignal | undefined;
}

const READY_WITHIN_MS = 30_000;
const POLL_MS = 50;

export interface SshForward {
  socketPath: string;
  close(): Promise<void>;
}

/**
 * Forwards a local socket to the engine's with the system's own `ssh`, so the user's settings, keys and agent
 * apply. One connection carries all requests: a connection per request would soon hit the server's
 * MaxStartups. `ssh://user@host:port/path/to/docker.sock`; without a path the default socket.
 */
export async function forwardOverSsh(url: URL, { clock, env, signal }: ReachOptions): Promise<SshForward> {
  // Directly in /tmp, because a socket's path is limited to about 100 bytes.
  const folder = await mkdtemp(join(tmpdir(), 'offsite-ssh-'));
  const socketPath = join(folder, 'docker.sock');
  const ssh = spawn('ssh', sshArguments(url, socketPath), { env, stdio: ['ignore', 'ignore', 'pipe'] });
  const close = async () => {
    ssh.kill();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    using deadline = startDeadline(clock, READY_WITHIN_MS, signal);
    const failed = failureOf(ssh, url);
    const accepts = (async () => {
      while (!(await accepted(socketPath))) await clock.sleep(POLL_MS, deadline.signal);
    })();
    accepts.catch(() => undefined);
    const first = await Promise.race([accepts, failed, deadline.reached]);
    if (first === 'canceled') throw signal?.reason;
    if (first === 'timed-out') throw sshFailure(url, `not ready after ${READY_WITHIN_MS / 1000} s`);
    return { socketPath, close };
  } catch (error) {
    await close();
    throw error;
  }
}

function sshArguments(url: URL, socketPath: string): string[] {
  const remote = url.pathname.length > 1 ? decodeURIComponent(url.pathname) : '/var/run/docker.sock';
  const user = decodeURIComponent(url.username);
  return [
    '-N',
    ...['-o', 'ExitOnForwardFailure=yes'],
    ...['-o', 'ServerAliveInterval=15'],
    // ssh must not ask questions: nobody may be there to answer.
    ...['-o', 'BatchMode=yes'],
    ...['-L', `${socketPath}:${remote}`],
    ...(url.port === '' ? [] : ['-p', url.port]),
    ...(user === '' ? [] : ['-l', user]),
    '--',
    url.hostname,
  ];
}

/** Rejects when `ssh` ends: it should not end before we stop it. */
function failureOf(ssh: ChildProcess, url: URL): Promise<never> {
  let complaint = '';
  ssh.stderr?.setEncoding('utf8').on('data', (text: string) => {
    complaint = (complaint + text).slice(-2_000);
  });
  const failure = new Promise<never>((_, reject) => {
    ssh.once('error', (error) => reject(sshFailure(url, error.message, error)));
    ssh.once('close', (code) => reject(sshFailure(url, complaint.trim() || `exit code ${code}`)));
  });
  failure.catch(() => undefined);
  return failure;
}

function accepted(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(socketPath);
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}

function sshFailure(url: URL, message: string, cause?: unknown): OffsiteError {
  return new OffsiteError(`ssh cannot reach the engine at ${url.hostname}: ${message}`, {
    code: 'ENGINE_CONNECTION',
    kind: 'infrastructure',
    hint: `Check that \`ssh ${url.hostname} docker version\` works without asking for a password.`,
    cause,
  });
}
