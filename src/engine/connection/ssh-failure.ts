import { OffsiteError } from '../../base/offsite-error.ts';

/** `ssh` cannot connect to an engine. The hint says what to do about it. */
export class SshFailure extends OffsiteError {}

/** What `ssh` should connect to. */
export interface SshTarget {
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
export function isClosedSocket(said: string): boolean {
  return /open failed/.test(said);
}

/** What `ssh` complained about, in one line, and what to do. */
export function sshFailure(target: SshTarget, said: string, cause?: Error): SshFailure {
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
