import type { DockerClient } from '../docker/client.ts';
import { listObjects as listAsDocker, removeObject as removeAsDocker } from '../docker/objects.ts';
import { isEngineFailure } from '../port/failure.ts';
import type { ListedObject, ObjectKind } from '../port/objects.ts';
import { imageId } from './names.ts';
import { isBusy, listedAgain, triedAgain } from './tried-again.ts';

export async function listObjects(
  client: DockerClient,
  kind: ObjectKind,
  labels: readonly string[],
  signal?: AbortSignal,
): Promise<ListedObject[]> {
  const { clock } = client;
  const listed = await listedAgain(() => listAsDocker(client, kind, labels, signal), { clock, signal });
  return listed.map((object) => ({
    ...object,
    // `stopped`: the program has ended, and Podman has not cleaned up yet.
    ...(object.state === 'stopped' && { state: 'exited' }),
    ...(object.imageId !== undefined && { imageId: imageId(object.imageId) }),
  }));
}

/**
 * Without a timeout of zero, Podman waits for a container's program to end by itself. It refuses to remove a
 * container whose network or processes others share, unless it may remove the others too. That is safe: no
 * container of Offsite's outlives one whose network or processes it shares.
 */
export async function removeObject(
  { docker, native }: { docker: DockerClient; native: DockerClient },
  kind: ObjectKind | 'image',
  id: string,
  signal?: AbortSignal,
): Promise<void> {
  if (kind !== 'container') return await removeAsDocker(docker, kind, id, signal);
  const path = `/libpod/containers/${id}?force=true&depend=true&volumes=true&timeout=0&ignore=true&`;
  const request = { method: 'DELETE' as const, path, expected: [200, 204, 404] };
  const { clock } = native;
  try {
    await triedAgain(() => native.ask('removing a container', request, { signal }), {
      ...{ isPassing: isBusy, clock, signal },
    });
  } catch (thrown) {
    if (!isEngineFailure(thrown, 'not-found')) throw thrown;
  }
}
