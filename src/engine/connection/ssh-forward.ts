import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { backoff, type Clock } from '../../base/clock.ts';
import { startDeadline } from '../../base/deadline.ts';
import { OffsiteError } from '../../base/offsite-error.ts';
import { connectionWaits } from './ending.ts';

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
  // A killed ssh leaves its socket behind, at the path where the next ssh makes its own. ssh must not ask
  // questions: nobody may be there to answer.
  const settings = 'ExitOnForwardFailure=yes ServerAliveInterval=15 StreamLocalBindUnlink=yes BatchMode=yes';
  return [
    '-N',
    ...settings.split(' ').flatMap((setting) => ['-o', setting]),
    '-L',
    `${socketPath}:${socket}`,
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

/**
 * Runs `ssh` as a child of a shell, which ends `ssh` when this process closes descriptor 3. The descriptor
 * closes even if this process is killed. The shell removes the folder of the socket before it ends `ssh`,
 * because the shell ends together with `ssh`.
 */
const script = `
folder=$1
shift
ssh "$@" 3<&- &
ssh=$!
{ read -r line <&3; rm -rf "$folder"; kill "$ssh"; } 2>/dev/null &
reader=$!
trap 'kill "$ssh" "$reader" 2>/dev/null' TERM
wait "$ssh"
code=$?
kill "$reader" 2>/dev/null
exit "$code"
`;

/** How `ssh` ended: what it complained about, or its exit code. */
interface SshEnd {
  complaint: string;
  cause?: Error;
}

/** A running `ssh`. */
interface SshProcess {
  /** What it has printed so far. */
  readonly said: string;
  /** Never rejects. */
  readonly ended: Promise<SshEnd>;
  end(): void;
}

/**
 * Starts the system's `ssh`. `ssh` ends with this process, however this process ends.
 *
 * @param folder removed if this process ends first
 */
function startSsh(args: readonly string[], folder: string, env: NodeJS.ProcessEnv): SshProcess {
  const child = spawn('/bin/sh', ['-c', script, 'sh', folder, ...args], {
    env,
    stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
  });
  let complaint = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    complaint = (complaint + text).slice(-2_000);
  });
  const { promise: ended, resolve } = Promise.withResolvers<SshEnd>();
  child.once('error', (cause) => resolve({ complaint: cause.message, cause }));
  child.once('close', (code) => resolve({ complaint: complaint.trim() || `exit code ${code}` }));
  return {
    get said() {
      return complaint;
    },
    ended,
    end: () => void child.kill(),
  };
}

/** `ssh` cannot connect to an engine. The hint says what to do about it. */
export class SshFailure extends OffsiteError {}

/** What `ssh` should connect to. */
interface SshTarget {
  url: URL;
  /** The engine's socket on the other machine. */
  socket: string;
}

interface Complaint {
  /** What `ssh` prints. The first that matches counts. */
  said: RegExp;
  why(target: SshTarget): string;
  hint(target: SshTarget): string;
}

const complaints: readonly Complaint[] = [
  {
    said: /HOST IDENTIFICATION HAS CHANGED/,
    why: () => 'the server has a different key from the one that this machine knows',
    hint: ({ url }) =>
      `If the server was set up again, remove the old key with \`ssh-keygen -R '${keyNameOf(url)}'\`, ` +
      `then run \`${commandOf(url)}\` once and accept the new one.`,
  },
  {
    said: /Host key verification failed/,
    why: () => 'this machine does not know the key of the server',
    hint: ({ url }) => `Run \`${commandOf(url)}\` once and accept the key.`,
  },
  {
    said: /Permission denied \(/,
    why: () => 'the server rejected your keys, and Offsite cannot enter a password',
    hint: ({ url }) =>
      `Run \`ssh-copy-id${portOf(url)} ${nameOf(url)}\`, or load your key with \`ssh-add\`, ` +
      `until \`${commandOf(url)}\` asks for nothing.`,
  },
  {
    said: /Could not resolve hostname/,
    why: ({ url }) => `no host is called ${url.hostname}`,
    hint: () => 'Check the address, or name the host in ~/.ssh/config.',
  },
  {
    said: /connect to host .* port/,
    why: () => 'no ssh server answers',
    hint: ({ url }) => `Check the address, and that \`${commandOf(url)}\` works.`,
  },
  {
    said: /open failed/,
    why: ({ socket }) => `the server cannot open the engine's socket ${socket}`,
    hint: ({ url, socket }) =>
      socket.includes('podman')
        ? `Run \`${commandOf(url)} systemctl --user enable --now podman.socket\`, and \`loginctl enable-linger\` there.`
        : `Run \`${commandOf(url)} docker version\`: it says whether an engine runs there, and whether the user ` +
          `may use it (group docker). For another socket, add its path to the address: ssh://host/path/to/docker.sock.`,
  },
];

/** Whether `ssh` says that it works, but the engine's socket does not. */
function isClosedSocket(said: string): boolean {
  return /open failed/.test(said);
}

/** What `ssh` complained about, in one line, and what to do. */
function sshFailure(target: SshTarget, said: string, cause?: Error): SshFailure {
  const { url } = target;
  const known = complaints.find((one) => one.said.test(said));
  const lines = said.split('\n').map((line) => line.trim());
  const why = known ? `${known.why(target)} (${lines.findLast((line) => line !== '')})` : said;
  return new SshFailure(`ssh cannot reach the engine at ${url.host}: ${why}`, {
    code: 'ENGINE_CONNECTION',
    kind: 'infrastructure',
    hint: known
      ? known.hint(target)
      : `Check that \`${commandOf(url)} docker version\` works without asking for a password.`,
    cause,
  });
}

function nameOf({ username, hostname }: URL): string {
  return username === '' ? hostname : `${decodeURIComponent(username)}@${hostname}`;
}

function portOf({ port }: URL): string {
  return port === '' ? '' : ` -p ${port}`;
}

function commandOf(url: URL): string {
  return `ssh${portOf(url)} ${nameOf(url)}`;
}

/** As `known_hosts` has it. */
function keyNameOf({ hostname, port }: URL): string {
  return port === '' ? hostname : `[${hostname}]:${port}`;
}
