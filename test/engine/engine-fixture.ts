import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { systemClock } from '../../src/base/clock.ts';
import { unmetWishes } from '../../src/engine/capabilities.ts';
import { type ConnectOptions, connectEngine } from '../../src/engine/connect.ts';
import type { ContainerSpec } from '../../src/engine/container/container-spec.ts';
import type { Container } from '../../src/engine/container.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { dockerOf } from './docker-of.ts';
import { hasFile } from './has-file.ts';

const baseImage = 'offsite/base';

/** A real engine under an instance name of the test's own. It fails, not skips, where no engine runs. */
export function testEngine(
  options: Partial<
    Pick<ConnectOptions, 'host' | 'clock' | 'instance' | 'snapshots' | 'note' | 'pull' | 'env'>
  > = {},
): Promise<Engine> {
  return connectEngine({ instance: `test-${randomUUID()}`, ...options });
}

/** A small sealed sandbox of the base image. If the engine has no filter of system calls, it does without. */
export async function testSpec(engine: Engine, changes: Partial<ContainerSpec> = {}): Promise<ContainerSpec> {
  const image = await engine.findImage(baseImage);
  if (image === undefined) throw new Error(`the image ${baseImage} is missing: run npm test once`);
  return {
    imageId: image.id,
    network: 'none',
    security: 'compatible',
    memoryBytes: 256 * 2 ** 20,
    cpus: Math.min(2, engine.capabilities.cpus),
    pids: 128,
    workingDir: '/workspace',
    ...(unmetWishes(changes, engine.capabilities).length > 0 && { filter: 'if-available' }),
    ...changes,
  };
}

/** The same, started. */
export async function startedContainer(
  engine: Engine,
  changes: Partial<ContainerSpec> = {},
): Promise<Container> {
  const container = await engine.createContainer(await testSpec(engine, changes));
  await container.start();
  return container;
}

/** Runs a line of shell with a deadline that only a hang reaches. */
export function shell(
  container: Container,
  script: string,
  more: { timeoutMs?: number; user?: string } = {},
) {
  return container.exec({ argv: ['sh', '-c', script], timeoutMs: 200_000, ...more });
}

/**
 * A daemon that holds no output: one that does would delay the end of its exec by 2 s, by the engine's
 * design.
 */
export function daemon(command: string): string {
  return `setsid -f ${command} < /dev/null > /dev/null 2>&1`;
}

/** Waits for what another process or the engine brings about. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const end = Date.now() + 120_000;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error('it did not come to pass in two minutes');
    await systemClock.sleep(20);
  }
}

/**
 * Waits until the engine's marker runs, which is made beside its first container and costs round trips of its
 * own.
 */
export async function markerRuns(engine: Engine): Promise<void> {
  const filters = { label: [`offsite.instance=${engine.instance}`, 'offsite.role=marker'] };
  await until(async () => (await dockerOf(engine).listContainers({ filters })).length === 1);
}

/** Waits until there is this file in a container of the engine's own. */
export async function untilFile(engine: Engine, path: string): Promise<void> {
  const filters = { label: [`offsite.instance=${engine.instance}`, 'offsite.role=container'] };
  await until(async () => {
    const containers = await dockerOf(engine).listContainers({ filters });
    return (await Promise.all(containers.map(({ Id }) => hasFile(engine, Id, path)))).includes(true);
  });
}

/**
 * Kills the first process of a container from outside, as the kernel does for lack of memory. Throws if the
 * process of that id on this machine is another one.
 */
export async function killFirstProcess({ port }: Engine, id: string): Promise<void> {
  const { initPid } = await port.containers.state(id);
  if (!readFileSync(`/proc/${initPid}/cgroup`, 'utf8').includes(id))
    throw new Error(`process ${initPid} of this machine is not the container's`);
  process.kill(initPid, 'SIGKILL');
}

/** Removes all images of a repository that a test had for itself, children before parents. */
export async function removeRepository(engine: Engine): Promise<void> {
  for (;;) {
    const snapshots = await engine.keptSnapshots();
    if (snapshots.length === 0) return;
    const parents = new Set(snapshots.map(({ parentId }) => parentId));
    await engine.removeSnapshots(snapshots.filter(({ id }) => !parents.has(id)));
  }
}
