import { systemClock } from '../../src/clock.ts';
import { forwardOverSsh } from '../../src/engine/connection/ssh-forward.ts';
import { engineReady } from '../set-up/engine-readiness.ts';
import type { EngineEntry, EngineGround, TestEngine } from './test-engine.ts';
import { openVirtualMachine } from './virtual-machine.ts';

/** An engine that a user without rights runs, as a service of the user's systemd. */
interface RootlessEngine {
  /** Below the user's runtime folder. */
  socket: string;
  start: string;
  kill: string;
}

const docker: RootlessEngine = {
  socket: 'docker.sock',
  start: 'systemctl --user start docker.service',
  // The stop waits until the processes have ended.
  kill: 'systemctl --user kill --signal=KILL docker.service; systemctl --user stop docker.service',
};

const podman: RootlessEngine = {
  socket: 'podman/podman.sock',
  start: 'systemctl --user start podman.socket',
  // The socket would start the service again.
  kill:
    'systemctl --user stop podman.socket; systemctl --user kill --signal=KILL podman.service; ' +
    'systemctl --user stop podman.service',
};

/**
 * Rootless engines can set limits only with control groups of version 2 that systemd delegates. So each runs
 * in a virtual machine of its own.
 */
export const rootlessEngines: readonly EngineEntry[] = [
  { name: 'docker-rootless', title: 'Rootless Docker', open: (ground) => openRootless(docker, ground) },
  { name: 'podman-rootless', title: 'Rootless Podman', open: (ground) => openRootless(podman, ground) },
];

const readyMs = 300_000;

async function openRootless(
  { socket, start, kill }: RootlessEngine,
  ground: EngineGround,
): Promise<TestEngine> {
  await using stack = new AsyncDisposableStack();
  const machine = stack.use(await openVirtualMachine(ground));
  const { logPath } = machine;
  const host = `${machine.host}/run/user/1000/${socket}`;
  const reaching = { clock: systemClock, env: { ...ground.env, ...machine.env }, signal: ground.signal };
  const { socketPath, close } = await forwardOverSsh(new URL(host), reaching);
  stack.defer(close);
  const engine = {
    ...{ host, socketPath, env: machine.env },
    async start() {
      await machine.run(start);
      const home = { socketPath, logPath };
      await engineReady({ home, clock: systemClock, signal: ground.signal, deadlineMs: readyMs });
    },
    async kill() {
      await machine.run(kill);
    },
  };
  await ground.during('Starting the engine', engine.start);
  const disposal = stack.move();
  return { ...engine, [Symbol.asyncDispose]: () => disposal.disposeAsync() };
}
