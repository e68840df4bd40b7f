import { OffsiteError } from '../../offsite-error.ts';
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
 * container whose network or processes others share; these are removed first. That is safe: no container of
 * Offsite's outlives one whose network or processes it shares.
 *
 * With `depend=true` Podman would remove the others too. It then locks a container before its dependents;
 * every other request locks them the other way round. If such a request comes at the same moment, the whole
 * service hangs until it is killed (seen with Podman 5.4).
 */
export async function removeObject(
  clients: { docker: DockerClient; native: DockerClient },
  kind: ObjectKind | 'image',
  id: string,
  signal?: AbortSignal,
): Promise<void> {
  const { docker, native } = clients;
  if (kind !== 'container') return await removeAsDocker(docker, kind, id, signal);
  for (let round = 1; ; round += 1) {
    try {
      return await removeContainer(native, id, signal);
    } catch (thrown) {
      if (isEngineFailure(thrown, 'not-found')) return;
      const dependents = dependentsIn(thrown);
      if (dependents.length === 0 || round === rounds) throw thrown;
      await Promise.all(dependents.map((each) => removeObject(clients, 'container', each, signal)));
    }
  }
}

/** More containers may begin to share a container's network while the first ones are removed. */
const rounds = 5;

async function removeContainer(native: DockerClient, id: string, signal?: AbortSignal): Promise<void> {
  const path = `/libpod/containers/${id}?force=true&volumes=true&timeout=0&ignore=true&`;
  const request = { method: 'DELETE' as const, path, expected: [200, 204, 404] };
  const { clock } = native;
  await triedAgain(() => native.ask('removing a container', request, { signal }), {
    ...{ isPassing: isBusy, clock, signal },
  });
}

/** The ids of containers because of which Podman refuses to remove one. */
function dependentsIn(thrown: unknown): string[] {
  if (!(thrown instanceof OffsiteError)) return [];
  const [, list = ''] =
    /dependent containers which must be removed before it: (.*)/.exec(thrown.message) ?? [];
  return list.match(/[0-9a-f]{64}/g) ?? [];
}
