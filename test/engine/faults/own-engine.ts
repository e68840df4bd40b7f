import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { addBridge } from '../../../scripts/engines/bridge.ts';
import { isRunning } from '../../../scripts/set-up/clear-leftovers.ts';
import type { EngineHome } from '../../../scripts/set-up/engine-home.ts';
import { startEngine } from '../../../scripts/set-up/start-engine.ts';
import { systemClock } from '../../../src/base/clock.ts';

/** An engine of the test's own, which it may stop and kill: the machine's is everybody's. Needs root. */
export interface OwnEngine extends AsyncDisposable {
  /** `unix://...`. */
  host: string;
  /** Starts it, as the set-up scripts do, and waits until it answers. Returns what they said. */
  start(): Promise<string[]>;
  /**
   * Resolves when the daemon is gone. Its containerd and the processes in containers may survive, as after a
   * real crash.
   */
  end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void>;
  /**
   * Resolves when everything is gone at once, as after a power failure: daemon, containerd, and the processes
   * in containers.
   */
  crash(): Promise<void>;
  /** Holds it where it is: it takes requests and answers none. Only SIGKILL helps then. */
  freeze(): Promise<void>;
}

interface OwnEngineOptions {
  /** Default: one that is slow, and works on whatever the folder is on. */
  storageDriver?: 'overlay2' | 'vfs';
  /** Further arguments of dockerd. */
  args?: readonly string[];
}

export async function ownEngine(options: OwnEngineOptions = {}): Promise<OwnEngine> {
  // Short: a socket's path may have 108 bytes.
  const folder = await mkdtemp(join(tmpdir(), 'offsite-own-'));
  // In place of the machine's own settings, whose hosts and folders would clash with ours.
  await writeFile(join(folder, 'daemon.json'), '{}');
  // Without one dockerd would take docker0, or with `--bridge=none` delete it, and that is the machine's engine's.
  const bridge = await addBridge();
  const home = homeIn(folder, bridge.name, options);
  const [daemonFile, containerdFile] = home.leftovers as [EngineHome['daemonFile'], EngineHome['daemonFile']];

  async function send(file: EngineHome['daemonFile'], signal: NodeJS.Signals): Promise<void> {
    if (await isRunning(file)) process.kill(Number(await readFile(file.path, 'utf8')), signal);
  }
  async function gone(file: EngineHome['daemonFile'], withinMs: number): Promise<boolean> {
    for (const end = Date.now() + withinMs; await isRunning(file); await systemClock.sleep(20)) {
      if (Date.now() > end) return false;
    }
    return true;
  }
  async function crash(): Promise<void> {
    await send(daemonFile, 'SIGKILL');
    await send(containerdFile, 'SIGKILL');
    const ended = await Promise.all([gone(daemonFile, 120_000), gone(containerdFile, 120_000)]);
    if (ended.includes(false)) throw new Error('the engine survives SIGKILL');
    await endContainersOf(folder);
  }
  return {
    host: `unix://${home.socketPath}`,
    async start() {
      const said: string[] = [];
      const log = (line: string) => void said.push(line);
      await startEngine({ how: 'detached', home, log, env: process.env, clock: systemClock });
      return said;
    },
    async end(signal) {
      await send(daemonFile, signal);
      if (!(await gone(daemonFile, 120_000)))
        throw new Error(`dockerd survives ${signal}; see ${home.logPath}`);
    },
    crash,
    freeze: () => send(daemonFile, 'SIGSTOP'),
    async [Symbol.asyncDispose]() {
      await crash();
      await unmountBelow(folder);
      await bridge[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true, maxRetries: 10 });
    },
  };
}

function homeIn(
  folder: string,
  bridge: string,
  { storageDriver = 'vfs', args = [] }: OwnEngineOptions,
): EngineHome {
  const socketPath = join(folder, 'docker.sock');
  const execRoot = join(folder, 'exec');
  const daemonFile = { path: join(folder, 'docker.pid'), program: 'dockerd' };
  return {
    socketPath,
    logPath: join(folder, 'dockerd.log'),
    daemonFile,
    leftovers: [daemonFile, { path: join(execRoot, 'containerd/containerd.pid'), program: 'containerd' }],
    args: [
      '--host',
      `unix://${socketPath}`,
      '--pidfile',
      daemonFile.path,
      '--data-root',
      join(folder, 'data'),
      '--exec-root',
      execRoot,
      '--bridge',
      bridge,
      '--iptables=false',
      '--ip-forward=false',
      '--ip-masq=false',
      // Should it use the machine's containerd, then in rooms of its own.
      '--containerd-namespace',
      bridge,
      '--containerd-plugins-namespace',
      `${bridge}-plugins`,
      '--storage-driver',
      storageDriver,
      '--config-file',
      join(folder, 'daemon.json'),
      ...args,
    ],
  };
}

/**
 * Shims outlive containerd; their command lines contain its folder, and the first process of a container is
 * their child.
 */
async function endContainersOf(folder: string): Promise<void> {
  const { stdout } = await execa('ps', ['-eo', 'pid,ppid,args']);
  const processes = stdout.split('\n').map((line) => /^ *(\d+) +(\d+) (.*)/.exec(line) ?? []);
  const shims = processes.filter(([, , , command]) =>
    command?.startsWith('containerd-shim') || command?.includes('/containerd-shim')
      ? command.includes(folder)
      : false,
  );
  const ids = new Set(shims.map(([, pid]) => pid));
  const children = processes.filter(([, , parent]) => ids.has(parent));
  for (const [, pid] of [...shims, ...children]) {
    // It may have ended by itself meanwhile.
    await execa('kill', ['-9', String(pid)], { reject: false });
  }
}

async function unmountBelow(folder: string): Promise<void> {
  const mounts = await readFile('/proc/self/mounts', 'utf8');
  const below = mounts
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '')
    .filter((path) => path.startsWith(`${folder}/`));
  for (const path of below.toReversed()) await execa('umount', ['--lazy', path]);
}
