import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, open, readdir, readFile, rm, rmdir, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { execa } from 'execa';
import { systemClock } from '../../src/clock.ts';

/**
 * Where an engine runs: another root file system, in a mount namespace of its own. What it writes stays in
 * `folder`, which has the same path inside and outside. All that it starts is in one control group, so that
 * its disposal ends everything, including what outlived the engine.
 */
export interface Room extends AsyncDisposable {
  folder: string;
  /** The control group for containers, as an engine takes it: `/offsite-engine-x/containers`. */
  containersGroup: string;
  /** Starts a program in the room. It writes into `log`, a file of the folder. */
  start(command: string, args: readonly string[], log: string): Promise<ChildProcess>;
  /** Runs a program in the room to its end, and returns its output. */
  run(command: string, args: readonly string[], more?: { input?: string }): Promise<string>;
}

/** A file system that overlayfs can be put on, which /tmp often is not. */
const parent = '/var/tmp';

/** Makes the root of the folder `$1` from the one in `$2`, enters it, and stays. */
const enterRoot = `
set -e
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay -o "lowerdir=$2,upperdir=$1/upper,workdir=$1/work" overlay "$1/root"
cd "$1/root"
mkdir -p ".$1" before
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs -o mode=755 run run
mount --bind "$1" ".$1"
cp -L /etc/resolv.conf etc/resolv.conf
pivot_root . before
cd /
umount -l before
echo entered
exec sleep infinity
`;

/** @param root the root file system, which is only read */
export async function openRoom(root: string): Promise<Room> {
  const folder = await mkdtemp(join(parent, 'offsite-engine-'));
  await chmod(folder, 0o711); // the users that an engine runs containers as must get through it
  const group = join(await groupsFolder(), basename(folder));
  const keeper = spawn(
    'unshare',
    ['--mount', '--propagation', 'private', 'sh', '-c', enterRoot, '-', folder, root],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: roomEnvironment,
    },
  );
  async function dispose() {
    if (existsSync(group)) await endGroup(group);
    keeper.kill('SIGKILL');
    if (keeper.exitCode === null && keeper.signalCode === null) await once(keeper, 'exit');
    await removeGroups(basename(folder));
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  }
  try {
    await mkdir(join(group, 'engine'), { recursive: true });
    await writeFile(join(group, 'engine', 'cgroup.procs'), String(keeper.pid));
    await entered(keeper);
  } catch (error) {
    await dispose();
    throw error;
  }
  const inside = ['--target', String(keeper.pid), '--mount', '--root', '--wd=/', '--'];
  // A process is in the group of the one that starts it, so a shell joins the group and becomes the program.
  const joining = ['-c', 'echo $$ > "$0" && exec nsenter "$@"', join(group, 'engine', 'cgroup.procs')];
  const argv = (command: string, args: readonly string[]) => [...joining, ...inside, command, ...args];
  return {
    folder,
    containersGroup: `/${basename(folder)}/containers`,
    async start(command, args, log) {
      const output = await open(log, 'a');
      try {
        return spawn('sh', argv(command, args), {
          cwd: '/',
          env: roomEnvironment,
          detached: true,
          stdio: ['ignore', output.fd, output.fd],
        });
      } finally {
        await output.close();
      }
    },
    async run(command, args, { input } = {}) {
      const more = input === undefined ? { stdin: 'ignore' as const } : { input };
      const options = { env: roomEnvironment, extendEnv: false, ...more };
      return (await execa('sh', argv(command, args), options)).stdout;
    },
    [Symbol.asyncDispose]: dispose,
  };
}

const roomEnvironment = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  HOME: '/root',
};

async function entered(keeper: ChildProcess): Promise<void> {
  let said = '';
  keeper.stderr?.on('data', (piece) => (said += piece));
  const [first] = await Promise.race([
    once(keeper.stdout as NodeJS.ReadableStream, 'data'),
    once(keeper, 'close'),
  ]);
  if (String(first) !== 'entered\n') throw new Error(`the engine's root cannot be entered: ${said.trim()}`);
}

/** The folder of control groups, version 2: of their own, or beside those of version 1. */
async function groupsFolder(): Promise<string> {
  const mounts = await readFile('/proc/self/mounts', 'utf8');
  const path = /^\S+ (\S+) cgroup2 /m.exec(mounts)?.[1];
  if (path === undefined) throw new Error('an engine for tests needs control groups, version 2');
  return path;
}

/** Ends each process of the group and of those below it. */
async function endGroup(group: string): Promise<void> {
  await writeFile(join(group, 'cgroup.kill'), '1');
  for (
    let waits = 0;
    (await readFile(join(group, 'cgroup.events'), 'utf8')).includes('populated 1');
    waits++
  ) {
    if (waits > 600) throw new Error(`the processes of ${group} survive SIGKILL`);
    await systemClock.sleep(50);
  }
}

/** Removes the group of that name in each hierarchy, with those below it. */
async function removeGroups(name: string): Promise<void> {
  const mounts = await readFile('/proc/self/mounts', 'utf8');
  for (const [, path = ''] of mounts.matchAll(/^\S+ (\S+) cgroup2? /gm)) await removeGroup(join(path, name));
}

async function removeGroup(path: string): Promise<void> {
  if (!existsSync(path)) return;
  const entries = await readdir(path, { withFileTypes: true });
  for (const entry of entries) if (entry.isDirectory()) await removeGroup(join(path, entry.name));
  await rmdir(path).catch(() => undefined); // a process of it is still being taken down
}
