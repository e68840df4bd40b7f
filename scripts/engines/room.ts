import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, open, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { execa } from 'execa';
import { addBridge } from './bridge.ts';
import { makeGroups } from './groups.ts';

/**
 * Where an engine runs: another root file system, in a mount namespace of its own. What it writes stays in
 * `folder`, which has the same path inside and outside. All that it starts is in control groups of its own,
 * which are the only ones it sees, so that its disposal ends everything, including what outlived the engine.
 */
export interface Room extends AsyncDisposable {
  folder: string;
  /** The address of this machine, as seen from the room. */
  machine: string;
  /** Starts a program in the room. It writes into `log`, a file of the folder. */
  start(command: string, args: readonly string[], log: string): Promise<ChildProcess>;
  /** Runs a program in the room to its end, and returns its output. */
  run(command: string, args: readonly string[], more?: { input?: string }): Promise<string>;
}

export interface RoomRequest {
  /** The root file system, which is only read. */
  root: string;
  /** Whether it has a network stack of its own, behind a bridge of this machine. */
  ownNetwork?: boolean;
  /** Whether it has control groups of version 1 only, where this machine has both. */
  withoutUnified?: boolean;
}

/** A file system that overlayfs can be put on, which /tmp often is not. */
const parent = '/var/tmp';

/** Joins the groups of the files in `$1`, and becomes the program in `$2 ...`. */
const joinGroups = 'for tasks in $1; do echo $$ > "$tasks" || exit; done; shift; exec "$@"';

/** Joins the groups of `$1`, makes the root of the folder `$2` from the one in `$3`, enters it, and stays. */
const enterRoot = `
set -e
for tasks in $1; do echo $$ > "$tasks"; done
mkdir "$2/upper" "$2/work" "$2/root"
mount -t overlay -o "lowerdir=$3,upperdir=$2/upper,workdir=$2/work" overlay "$2/root"
cd "$2/root"
mkdir -p ".$2" before
mount -t proc proc proc
mount --rbind /sys sys
groups=$(grep -E ' cgroup2? ' /proc/self/mounts)
umount -R sys/fs/cgroup
case $groups in *' /sys/fs/cgroup cgroup2 '*) ;; *) mount -t tmpfs -o mode=755 groups sys/fs/cgroup ;; esac
while read -r _ path type options _; do
  [ "$type" = "$4" ] && continue
  mkdir -p ".$path"
  mount -t "$type" -o "$options" "$type" ".$path"
done << groups
$groups
groups
mount --rbind /dev dev
mount -t tmpfs -o mode=755 run run
mount --bind "$2" ".$2"
cp -L /etc/resolv.conf etc/resolv.conf
pivot_root . before
cd /
umount -l before
echo entered
exec sleep infinity
`;

export async function openRoom({ root, ownNetwork, withoutUnified }: RoomRequest): Promise<Room> {
  await using made = new AsyncDisposableStack();
  const folder = await mkdtemp(join(parent, 'offsite-engine-'));
  made.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
  await chmod(folder, 0o711); // the users that an engine runs containers as must get through it
  const bridge = ownNetwork ? made.use(await addBridge()) : undefined;
  const groups = made.use(await makeGroups(basename(folder)));
  const namespaces = ['--mount', '--propagation', 'private', '--cgroup', ...(bridge ? ['--net'] : [])];
  const omitted = withoutUnified && groups.roots.length > 1 ? 'cgroup2' : '';
  const entering = ['sh', '-c', enterRoot, '-', groups.engine.join(' '), folder, root, omitted];
  const joiningRoots = ['-c', joinGroups, '-', groups.roots.join(' ')];
  const keeper = spawn('sh', [...joiningRoots, 'unshare', ...namespaces, ...entering], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: roomEnvironment,
  });
  made.defer(async () => {
    keeper.kill('SIGKILL');
    if (keeper.exitCode === null && keeper.signalCode === null) await once(keeper, 'exit');
  });
  await entered(keeper);
  const pid = keeper.pid as number;
  await bridge?.lead(pid);
  const joining = ['-c', joinGroups, '-', groups.engine.join(' '), 'nsenter', '--target', String(pid)];
  const inside = ['--mount', '--cgroup', ...(bridge ? ['--net'] : []), '--root', '--wd', '--'];
  const argv = (command: string, args: readonly string[]) => [...joining, ...inside, command, ...args];
  const disposal = made.move();
  return {
    folder,
    machine: bridge?.addresses.host ?? '127.0.0.1',
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
    [Symbol.asyncDispose]: () => disposal.disposeAsync(),
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
