import { chmod, copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { systemClock } from '../../src/clock.ts';
import { addBridge } from './bridge.ts';
import { debianRoot } from './debian-root.ts';
import { machineDisk } from './machine-disk.ts';
import { openRoom } from './room.ts';
import type { EngineGround } from './test-engine.ts';

/**
 * A virtual machine with a kernel of its own: User Mode Linux, which needs no help of the processor. It has
 * control groups of version 2 whatever this machine has, systemd, and a user whose control groups are delegated.
 * It has one processor.
 */
export interface VirtualMachine extends AsyncDisposable {
  /** Its user: `ssh://tester@198.18.7.2`. */
  host: string;
  /** The environment in which `ssh` has the user's key and knows the machine. */
  env: NodeJS.ProcessEnv;
  /** The file that its console is written to. */
  logPath: string;
  /** Runs a line of shell there as the user, and returns its output. */
  run(script: string): Promise<string>;
}

/** What every such machine has; more packages are its engine's. */
const packages = [
  ...['user-mode-linux', 'systemd', 'systemd-sysv', 'udev', 'kmod', 'dbus', 'dbus-user-session'],
  ...['libpam-systemd', 'openssh-server', 'procps', 'iproute2', 'iptables', 'ca-certificates'],
  ...['uidmap', 'slirp4netns', 'passt', 'fuse-overlayfs', 'docker.io', 'rootlesskit'],
  ...['podman', 'crun', 'netavark', 'aardvark-dns'],
];

const setUp = fileURLToPath(new URL('./machine-set-up.sh', import.meta.url));

const bootMs = 360_000;

/** Starts one and resolves when it can be logged in to. Its files and its memory go with it. Needs root. */
export async function openVirtualMachine(ground: EngineGround): Promise<VirtualMachine> {
  await using made = new AsyncDisposableStack();
  const root = await debianRoot({ suite: 'trixie', packages, setUp }, ground);
  const disk = await machineDisk(root, ground);
  const room = made.use(await openRoom({ root }));
  const bridge = made.use(await addBridge());
  const { guest, host } = bridge.addresses;
  const at = (name: string) => join(room.folder, name);
  await execa('cp', ['--sparse=always', disk, at('disk')]);
  await copyFile(join(root, 'home/tester/.ssh/id'), at('key'));
  await chmod(at('key'), 0o600);
  const hostKey = await readFile(join(root, 'etc/ssh/ssh_host_ed25519_key.pub'), 'utf8');
  await writeFile(at('known'), `${guest} ${hostKey}`);
  const settings = { IdentityFile: at('key'), IdentitiesOnly: 'yes', UserKnownHostsFile: at('known') };
  const lines = Object.entries(settings).map(([name, value]) => `${name} ${value}\n`);
  await writeFile(at('client'), lines.join(''));
  await mkdir(at('bin'));
  await writeFile(at('bin/ssh'), `#!/bin/sh\nexec /usr/bin/ssh -F ${at('client')} "$@"\n`, { mode: 0o755 });

  const logPath = at('console.log');
  const kernel = await room.start(
    'linux.uml',
    [
      ...[
        'mem=3072M',
        'umid=machine',
        `uml_dir=${room.folder}/`,
        `ubd0=${at('disk')}`,
        'root=/dev/ubda',
        'rw',
      ],
      ...[`eth0=tuntap,${await bridge.addTap()}`, `ip=${guest}::${host}:255.255.255.0::eth0:none`],
      ...['con=null', 'ssl=null', 'con0=null,fd:1', 'systemd.unified_cgroup_hierarchy=1'],
    ],
    logPath,
  );
  const address = `tester@${guest}`;
  const ssh = (script: string) => [
    ...['-F', at('client'), '-o', 'BatchMode=yes', '-o', 'ConnectTimeout=60', address, script],
  ];
  await ground.during('Starting a virtual machine', async () => {
    const deadline = systemClock.now() + bootMs;
    while ((await execa('ssh', ssh('true'), { reject: false })).exitCode !== 0) {
      const why = kernel.exitCode === null ? 'is not ready' : `ended with ${kernel.exitCode}`;
      if (kernel.exitCode !== null || systemClock.now() > deadline) {
        const said = (await readFile(logPath, 'utf8')).trimEnd().split('\n').slice(-15).join('\n');
        throw new Error(`the virtual machine ${why}:\n${said}`);
      }
      await systemClock.sleep(500, ground.signal);
    }
  });
  const disposal = made.move();
  return {
    host: `ssh://${address}`,
    env: { PATH: `${at('bin')}:${ground.env.PATH}` },
    logPath,
    run: async (script) => (await execa('ssh', ssh(script), { stdin: 'ignore' })).stdout,
    [Symbol.asyncDispose]: () => disposal.disposeAsync(),
  };
}
