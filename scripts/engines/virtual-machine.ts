import type { ChildProcess } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { systemClock } from '../../src/base/clock.ts';
import { addBridge } from './bridge.ts';
import { debianRoot } from './debian-root.ts';
import { machineDisk } from './machine-disk.ts';
import { type MachineUser, machineLogin } from './machine-login.ts';
import { openRoom } from './room.ts';
import type { EngineGround } from './test-engine.ts';

/**
 * A virtual machine with a kernel of its own: User Mode Linux, which needs no help of the processor. It has
 * control groups of version 2 whatever this machine has, systemd, and a user whose control groups are
 * delegated. It has one processor.
 */
export interface VirtualMachine extends AsyncDisposable {
  /** A user there: `ssh://tester@198.18.7.2`. */
  hostOf(user: MachineUser): string;
  /** The environment in which `ssh` has the user's key and knows the machine. */
  env: NodeJS.ProcessEnv;
  /** The file that its console is written to. */
  logPath: string;
  /** Runs a line of shell there, and returns its output. */
  run(user: MachineUser, script: string): Promise<string>;
}

/** The packages of every such machine, for all engines, because making a root takes minutes. */
const packages = [
  'user-mode-linux',
  'systemd',
  'systemd-sysv',
  'udev',
  'kmod',
  'dbus',
  'dbus-user-session',
  'libpam-systemd',
  'openssh-server',
  'procps',
  'iproute2',
  'iptables',
  'ca-certificates',
  'uidmap',
  'slirp4netns',
  'passt',
  'fuse-overlayfs',
  'docker.io',
  'rootlesskit',
  'podman',
  'crun',
  'netavark',
  'aardvark-dns',
];

const setUp = fileURLToPath(new URL('./machine-set-up.sh', import.meta.url));

/** Milliseconds; half a minute is usual. */
const bootMs = 360_000;

/**
 * Starts a virtual machine and resolves when its user can log in. Its disposal frees its files and its
 * memory. Needs root.
 */
export async function openVirtualMachine(ground: EngineGround): Promise<VirtualMachine> {
  await using made = new AsyncDisposableStack();
  const root = await debianRoot({ suite: 'trixie', packages, setUp }, ground);
  const image = await machineDisk(root, ground);
  const room = made.use(await openRoom({ root }));
  const bridge = made.use(await addBridge());
  const { guest, host } = bridge.addresses;
  const { running, programs } = await machineLogin(room.folder, root, guest);
  const disk = join(room.folder, 'disk');
  await execa('cp', ['--sparse=always', image, disk]);
  const logPath = join(room.folder, 'console.log');
  const kernel = await room.start(
    'linux.uml',
    [
      'mem=4096M',
      'umid=machine',
      `uml_dir=${room.folder}/`,
      `ubd0=${disk}`,
      'root=/dev/ubda',
      'rw',
      'systemd.unified_cgroup_hierarchy=1',
      `eth0=tuntap,${await bridge.addTap()}`,
      `ip=${guest}::${host}:255.255.255.0::eth0:none`,
      'con=null',
      'ssl=null',
      'con0=null,fd:1',
    ],
    logPath,
  );
  await ground.during('Starting a virtual machine', () =>
    loggedIn(kernel, running('tester', 'true'), logPath, ground),
  );
  const disposal = made.move();
  return {
    hostOf: (user) => `ssh://${user}@${guest}`,
    env: { PATH: `${programs}:${ground.env.PATH}` },
    logPath,
    run: async (user, script) => (await execa('ssh', running(user, script), { stdin: 'ignore' })).stdout,
    [Symbol.asyncDispose]: () => disposal.disposeAsync(),
  };
}

/**
 * Resolves when a login works. Throws with the last lines of the console if it does not, or the kernel ends.
 */
async function loggedIn(
  kernel: ChildProcess,
  login: readonly string[],
  logPath: string,
  { signal }: EngineGround,
): Promise<void> {
  const deadline = systemClock.now() + bootMs;
  while ((await execa('ssh', login, { reject: false, stdin: 'ignore' })).exitCode !== 0) {
    const end = kernel.exitCode ?? kernel.signalCode;
    if (end !== null || systemClock.now() > deadline) {
      const why = end === null ? 'is not ready' : `ended with ${end}`;
      const lines = (await readFile(logPath, 'utf8')).trimEnd().split('\n').slice(-15);
      throw new Error(`the virtual machine ${why}:\n${lines.join('\n')}`);
    }
    await systemClock.sleep(500, signal);
  }
}
