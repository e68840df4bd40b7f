import { copyFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openRoom } from './room.ts';
import { serviceProcess } from './service-process.ts';
import type { EngineGround, TestEngine } from './test-engine.ts';

export interface PodmanService {
  /** The root file system that it runs in. */
  root: string;
  ground: EngineGround;
}

const crun = fileURLToPath(new URL('./crun-within-limits.sh', import.meta.url));

/** Starts Podman's service in a network stack of its own. */
export async function startPodman({ root, ground }: PodmanService): Promise<TestEngine> {
  await using stack = new AsyncDisposableStack();
  // crun 1.8 refuses control groups of both versions side by side.
  const room = stack.use(await openRoom({ root, ownNetwork: true, withoutUnified: true }));
  const at = (name: string) => join(room.folder, name);
  const home = { socketPath: at('podman.sock'), logPath: at('podman.log') };
  await copyFile(crun, at('crun'));
  await room.run('chmod', ['755', at('crun')]);
  await writeFile(at('containers.conf'), `[engine.runtimes]\ncrun = ["${at('crun')}"]\n`);
  await room.run('cp', [at('containers.conf'), '/etc/containers/containers.conf']);
  // Podman expects TLS of every registry. The tests have one without it, on this machine.
  await writeFile(at('registries.conf'), `[[registry]]\nlocation = "${room.machine}"\ninsecure = true\n`);
  await room.run('cp', [at('registries.conf'), '/etc/containers/registries.conf.d/']);
  const address = `unix://${home.socketPath}`;
  const args = [
    '--root',
    at('data'),
    '--cgroup-manager',
    'cgroupfs',
    '--events-backend',
    'file',
    '--network-backend',
    'netavark',
    '--runtime',
    'crun',
    'system',
    'service',
    '--time',
    '0',
    address,
  ];
  const engine: TestEngine = {
    host: address,
    socketPath: home.socketPath,
    env: { OFFSITE_TEST_MACHINE: room.machine },
    ...serviceProcess({
      name: "Podman's service",
      home,
      ground,
      launch: () => room.start('podman', args, home.logPath),
    }),
    async [Symbol.asyncDispose]() {
      await engine.kill();
      await disposal.disposeAsync();
    },
  };
  await engine.start();
  const disposal = stack.move();
  return engine;
}
