import type Docker from 'dockerode';
import type { Engine } from '../../src/engine/engine.ts';
import { dockerOf } from '../../test/engine/docker-of.ts';

/** How the floor's containers are disconnected from the network: see {@link floorTrial}. */
export type FloorNetwork = 'none' | 'disabled';

/**
 * The floor: the engine's own cost for the containers of one trial, directly through the Engine API. Two
 * containers, one for the harness and one for grading, both without network: created and started side by
 * side, one exec in each, one after the other, and both removed. Resolves when they are gone.
 *
 * @param network `none` is the documented way (`--network none`); `disabled` skips the engine's set-up of an
 *   empty network, as Offsite does, and is the strictest floor
 */
export async function floorTrial(engine: Engine, imageId: string, network: FloorNetwork): Promise<void> {
  await finished(await started(engine, imageId, network));
}

/**
 * So many floors one at a time, as Offsite runs trials one at a time: the containers of the next are started
 * while the current one runs, and nothing waits for a removal but the end.
 */
export async function pipelinedFloors(
  engine: Engine,
  imageId: string,
  network: FloorNetwork,
  count: number,
): Promise<void> {
  const removals: Promise<void>[] = [];
  let next = started(engine, imageId, network);
  for (let n = 1; n <= count; n++) {
    const containers = await next;
    if (n < count) next = started(engine, imageId, network);
    for (const container of containers) await runIn(container, ['true']);
    removals.push(removed(containers));
  }
  await Promise.all(removals);
}

function started(engine: Engine, imageId: string, network: FloorNetwork): Promise<FloorContainer[]> {
  return Promise.all([1, 2].map(() => startedContainer(engine, imageId, { network })));
}

async function finished(containers: readonly FloorContainer[]): Promise<void> {
  try {
    for (const container of containers) await runIn(container, ['true']);
  } finally {
    await removed(containers);
  }
}

async function removed(containers: readonly FloorContainer[]): Promise<void> {
  await Promise.all(containers.map((container) => container.remove({ force: true })));
}

export type FloorContainer = Docker.Container;

export interface FloorOptions {
  network: FloorNetwork | `container:${string}`;
  /** Default: nothing runs in it. */
  command?: string[];
}

export async function startedContainer(
  engine: Engine,
  imageId: string,
  { network, command = ['sleep', 'infinity'] }: FloorOptions,
): Promise<FloorContainer> {
  const container = await dockerOf(engine).createContainer({
    Image: imageId,
    Cmd: command,
    NetworkDisabled: network === 'disabled',
    HostConfig: { NetworkMode: network === 'disabled' ? 'none' : network },
    Labels: { offsite: '1', 'offsite.instance': engine.instance },
  });
  await container.start();
  return container;
}

/** Runs a command to its end. Throws if it fails. */
export async function runIn(container: FloorContainer, command: string[], env: string[] = []): Promise<void> {
  const exec = await container.exec({ Cmd: command, Env: env, AttachStdout: true, AttachStderr: true });
  const stream = await exec.start({ hijack: true, stdin: false });
  stream.resume();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  stream.on('end', resolve).on('close', resolve).on('error', reject);
  await promise;
  const { ExitCode } = await exec.inspect();
  if (ExitCode !== 0) throw new Error(`the floor's command exited with ${ExitCode}`);
}
