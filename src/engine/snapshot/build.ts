import type { ContainerSpec } from '../container/container-spec.ts';
import type { CreateOptions } from '../container/create.ts';
import type { Container } from '../container.ts';
import { DESCRIPTION_LABEL, PARENT_LABEL } from '../labels.ts';
import type { EnginePort } from '../port/engine-port.ts';
import { isEngineFailure } from '../port/failure.ts';
import { otherBuildOver } from './other-build.ts';
import type { SnapshotRequest } from './snapshot-request.ts';

export interface Builder {
  port: EnginePort;
  instance: string;
  /** The snapshots' name without a tag. */
  repository: string;
  createContainer(spec: ContainerSpec, options: CreateOptions): Promise<Container>;
}

export type Built =
  | { kind: 'built' | 'found'; imageId: string }
  | { kind: 'not-snapshotable'; processes: string[] };

/**
 * Builds a missing snapshot once on this engine. If another agent is building it, this waits and uses that
 * agent's snapshot, or builds it if that agent did not. Rethrows what `build` throws.
 */
export async function buildOnce(
  builder: Builder,
  request: SnapshotRequest,
  tag: string,
  signal?: AbortSignal,
): Promise<Built> {
  const { port, repository } = builder;
  await using container = await takeTurn(builder, request, tag, signal);
  // Another agent may have finished between the search that found nothing and this point.
  const found = await port.images.find(`${repository}:${tag}`, signal);
  if (found !== undefined) return { kind: 'found', imageId: found.id };
  await container.start(signal);
  await request.build(container);
  const processes = await container.processes();
  if (processes.length > 0) {
    return { kind: 'not-snapshotable', processes: processes.map(({ command }) => command) };
  }
  const labels = { [PARENT_LABEL]: request.parentImageId, [DESCRIPTION_LABEL]: request.description ?? '' };
  return { kind: 'built', imageId: await container.commit({ repository, tag, labels }, signal) };
}

/** The container to build in. Its name makes it the only one of its kind on the engine. */
async function takeTurn(
  { port, instance, repository, createContainer }: Builder,
  request: SnapshotRequest,
  tag: string,
  signal?: AbortSignal,
): Promise<Container> {
  const name = `${repository.replaceAll('/', '-')}-${tag}`;
  const spec = { ...request.container, imageId: request.parentImageId };
  for (;;) {
    try {
      return await createContainer(spec, { name, signal });
    } catch (thrown) {
      if (!isEngineFailure(thrown, 'conflict')) throw thrown;
    }
    request.waits?.();
    await otherBuildOver(port, instance, name, signal);
  }
}
