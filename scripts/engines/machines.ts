import { systemClock } from '../../src/base/clock.ts';
import { forwardOverSsh } from '../../src/engine/connection/ssh-forward.ts';
import { engineReady } from '../set-up/engine-readiness.ts';
import type { MachineUser } from './machine-login.ts';
import type { EngineEntry, EngineGround, TestEngine } from './test-engine.ts';
import { openVirtualMachine } from './virtual-machine.ts';

/** An engine that is a service of a virtual machine. */
interface MachineEngine {
  user: MachineUser;
  socket: string;
  start: string;
  kill: string;
}

// The stop waits until the processes have ended.
const killed = (systemctl: string, service: string) =>
  `${systemctl} kill --signal=KILL ${service}; ${systemctl} stop ${service}`;

const rootlessDocker: MachineEngine = {
  user: 'tester',
  socket: '/run/user/1000/docker.sock',
  start: 'systemctl --user start docker.service',
  kill: killed('systemctl --user', 'docker.service'),
};

// The socket would start the service again.
const rootlessPodman: MachineEngine = {
  user: 'tester',
  socket: '/run/user/1000/podman/podman.sock',
  start: 'systemctl --user start podman.socket',
  kill: `systemctl --user stop podman.socket; ${killed('systemctl --user', 'podman.service')}`,
};

const docker: MachineEngine = {
  user: 'root',
  socket: '/run/docker.sock',
  start: 'systemctl start docker.service',
  kill: `systemctl stop docker.socket; ${killed('systemctl', 'docker.service')}`,
};

const podman: MachineEngine = {
  user: 'root',
  socket: '/run/podman/podman.sock',
  start: 'systemctl start podman.socket',
  kill: `systemctl stop podman.socket; ${killed('systemctl', 'podman.service')}`,
};

const entry = (name: string, title: string, engine: MachineEngine): EngineEntry => ({
  name,
  title,
  open: (ground) => openInMachine(engine, ground),
});

/**
 * Engines that need control groups of version 2 with systemd, which this machine may not have: rootless ones,
 * which can set limits only there, and those of most people's machines. Each has a virtual machine.
 */
export const machineEngines: readonly EngineEntry[] = [
  entry('docker-systemd', 'Docker with systemd', docker),
  entry('docker-rootless', 'Rootless Docker', rootlessDocker),
  entry('podman-systemd', 'Podman with systemd', podman),
  entry('podman-rootless', 'Rootless Podman', rootlessPodman),
];

const readyMs = 300_000;

async function openInMachine(
  { user, socket, start, kill }: MachineEngine,
  ground: EngineGround,
): Promise<TestEngine> {
  await using stack = new AsyncDisposableStack();
  const machine = stack.use(await openVirtualMachine(ground));
  const { logPath } = machine;
  const host = `${machine.hostOf(user)}${socket}`;
  const reaching = { clock: systemClock, env: { ...ground.env, ...machine.env }, signal: ground.signal };
  const { socketPath, close } = await forwardOverSsh(new URL(host), reaching);
  stack.defer(close);
  const engine = {
    host,
    socketPath,
    env: { ...machine.env, OFFSITE_TEST_ELSEWHERE: 'yes' },
    async start() {
      await machine.run(user, start);
      const home = { socketPath, logPath };
      await engineReady({ home, clock: systemClock, signal: ground.signal, deadlineMs: readyMs });
    },
    async kill() {
      await machine.run(user, kill);
    },
  };
  await ground.during('Starting the engine', engine.start);
  const disposal = stack.move();
  return { ...engine, [Symbol.asyncDispose]: () => disposal.disposeAsync() };
}
