import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { appendFile, chmod, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { execa } from 'execa';
import { systemClock } from '../../src/base/clock.ts';
import { freePort } from '../free-port.ts';

/** Debian's openssh-server on a port of the loopback, with keys of its own. Needs root. */
export interface SshServer extends AsyncDisposable {
  /** `ssh://root@127.0.0.1:PORT`. */
  host: string;
  /** The environment in which `ssh` has the key and knows the server. */
  env: NodeJS.ProcessEnv;
  /** The client's file of the keys of servers that it knows. */
  knownHosts: string;
  /** Ends every connection with SIGKILL, at the client's side and at the server's. The server stays. */
  cut(): Promise<void>;
  /** Ends the server and its connections. */
  stop(): Promise<void>;
  start(): Promise<void>;
  /** The `ssh` clients of this environment that run. */
  clients(): Promise<number[]>;
}

export async function sshServer(): Promise<SshServer> {
  const program = await sshd();
  const folder = await mkdtemp(join(tmpdir(), 'offsite-sshd-'));
  const port = await freePort();
  // sshd reads the keys as the user who logs in.
  await chmod(folder, 0o755);
  const at = (name: string) => join(folder, name);
  for (const key of ['host', 'user'])
    await execa('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', at(key)]);
  await rename(at('user.pub'), at('authorized'));
  const hostKey = await readFile(at('host.pub'), 'utf8');
  await writeFile(at('known'), `[127.0.0.1]:${port} ${hostKey}`);
  await writeFile(
    at('client'),
    `IdentityFile ${at('user')}\nIdentitiesOnly yes\nUserKnownHostsFile ${at('known')}\n`,
  );
  await writeFile(
    at('server'),
    [
      `Port ${port}`,
      'ListenAddress 127.0.0.1',
      `HostKey ${at('host')}`,
      `AuthorizedKeysFile ${at('authorized')}`,
      `PidFile ${at('pid')}`,
      'PermitRootLogin prohibit-password',
      'StrictModes no',
      'UsePAM no',
      '',
    ].join('\n'),
  );
  // sshd asks for this user, which only the installed package adds.
  const users = await readFile('/etc/passwd', 'utf8');
  await writeFile(at('passwd'), users);
  if (!/^sshd:/m.test(users))
    await appendFile(at('passwd'), 'sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin\n');
  await mkdir(at('bin'));
  await writeFile(at('bin/ssh'), `#!/bin/sh\nexec /usr/bin/ssh -F ${at('client')} "$@"\n`);
  await chmod(at('bin/ssh'), 0o755);

  let server: ChildProcess | undefined;
  const clients = () => processesWith(`-F ${at('client')} `);
  const cut = async () => {
    const sessions = server?.pid === undefined ? [] : await below(server.pid);
    for (const pid of [...(await clients()), ...sessions]) kill(pid);
  };
  const stop = async () => {
    await cut();
    const running = server;
    server = undefined;
    if (!running?.pid) return;
    const ended = once(running, 'close');
    kill(running.pid);
    await ended;
  };
  const start = async () => {
    const mount = 'mount --bind "$1" /etc/passwd && mkdir -p /run/sshd && shift && exec "$@"';
    const args = ['--mount', 'sh', '-c', mount, 'sh', at('passwd'), program];
    server = spawn('unshare', [...args, '-D', '-E', at('log'), '-f', at('server')], {
      stdio: 'ignore',
      env: { ...process.env, LD_LIBRARY_PATH: resolve(program, '../../lib') },
    });
    const begun = server;
    while (!(await accepts(port))) {
      if (begun.exitCode !== null) throw new Error(`sshd ended with ${begun.exitCode}`);
      await systemClock.sleep(20);
    }
  };
  await start();
  return {
    host: `ssh://root@127.0.0.1:${port}`,
    env: { ...process.env, PATH: `${at('bin')}:${process.env.PATH}` },
    knownHosts: at('known'),
    clients,
    cut,
    stop,
    start,
    async [Symbol.asyncDispose]() {
      await stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** The path of the program: the machine's, else that of Debian's package, unpacked and kept. */
async function sshd(): Promise<string> {
  if (existsSync('/usr/sbin/sshd')) return '/usr/sbin/sshd';
  const cache = resolve('node_modules/.cache/offsite-sshd');
  const program = join(cache, 'usr/sbin/sshd');
  if (existsSync(program)) return program;
  await mkdir(resolve(cache, '..'), { recursive: true });
  const folder = await mkdtemp(`${cache}-`);
  // A fresh machine has no lists of packages.
  await execa('apt-get', ['-q', 'update']);
  await execa('apt-get', ['-q', 'download', 'openssh-server', 'libwrap0'], { cwd: folder });
  await execa('sh', ['-c', 'for deb in *.deb; do dpkg-deb -x "$deb" . && rm "$deb"; done'], { cwd: folder });
  await execa('sh', ['-c', 'mv usr/lib/*/libwrap.so.0* usr/lib/'], { cwd: folder });
  // Another test file may have been faster.
  await rename(folder, cache).catch(() => rm(folder, { recursive: true, force: true }));
  return program;
}

function accepts(port: number): Promise<boolean> {
  return new Promise((settle) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => settle(true)).once('error', () => settle(false));
    socket.once('connect', () => socket.destroy());
  });
}

async function processes(): Promise<{ pid: number; parent: number; command: string }[]> {
  const { stdout } = await execa('ps', ['-eo', 'pid,ppid,args', '--no-headers', '-ww']);
  return stdout.split('\n').flatMap((line) => {
    const [, pid, parent, command] = /^ *(\d+) +(\d+) (.*)/.exec(line) ?? [];
    return command === undefined ? [] : [{ pid: Number(pid), parent: Number(parent), command }];
  });
}

async function processesWith(part: string): Promise<number[]> {
  const all = await processes();
  return all.flatMap(({ pid, command }) => (command.includes(part) ? [pid] : []));
}

async function below(pid: number): Promise<number[]> {
  const all = await processes();
  const children = all.filter(({ parent }) => parent === pid).map((child) => child.pid);
  return [...children, ...(await Promise.all(children.map(below))).flat()];
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended meanwhile.
  }
}
