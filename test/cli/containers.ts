import { connectEngine } from '../../src/engine/connect.ts';
import { dockerOf } from '../engine/docker-of.ts';

/** A container of ours, as the engine lists it. */
export interface Listed {
  instance: string;
  role: string;
  state: string;
}

/**
 * Waits (a minute at most) until `wanted` holds of the containers that carry all of `labels`, and returns
 * them.
 */
export async function containersOnce(
  labels: string[],
  wanted: (containers: Listed[]) => boolean,
): Promise<Listed[]> {
  await using engine = await connectEngine({ instance: `test-list-${process.pid}` });
  for (const end = Date.now() + 60_000; ; ) {
    const listed = await dockerOf(engine).listContainers({ all: true, filters: { label: labels } });
    const containers = listed.map(({ Labels, State }) => ({
      instance: Labels['offsite.instance'] ?? '',
      role: Labels['offsite.role'] ?? '',
      state: State,
    }));
    if (wanted(containers)) return containers;
    if (Date.now() > end) throw new Error(`still ${JSON.stringify(containers)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Removes the snapshots of prepares that a test makes anew each time. Those in use stay. */
export async function removeSnapshotsOf(...cases: string[]): Promise<void> {
  await using engine = await connectEngine({ instance: `test-remove-${process.pid}` });
  const docker = dockerOf(engine);
  for (const name of cases) {
    const label = [`offsite.description=prepare of ${name}`];
    const images = await docker.listImages({ filters: { label } });
    await Promise.allSettled(
      images.flatMap(({ RepoTags = [] }) => RepoTags.map((tag) => docker.getImage(tag).remove())),
    );
  }
}
