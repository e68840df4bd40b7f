import { OffsiteError } from '../../offsite-error.ts';
import type { RunningContainer } from './running-container.ts';

/**
 * Takes a running container off every network, so that its own loopback is all it has; what was connected is cut. It stays so when it
 * is started again. Three round trips.
 */
export async function disconnectContainer(container: RunningContainer, signal?: AbortSignal): Promise<void> {
  const { client, id } = container;
  for (const network of await networksOf(container, signal)) {
    await client.call(
      'taking a container off its network',
      (abortSignal) =>
        client.dial({
          method: 'POST',
          path: `/networks/${encodeURIComponent(network)}/disconnect?`,
          expected: [200, 204],
          body: { Container: id, Force: true },
          abortSignal,
        }),
      { signal },
    );
  }
  const left = await networksOf(container, signal);
  if (left.length === 0) return;
  throw new OffsiteError(`The engine left a container on its network (${left.join(', ')}).`, {
    code: 'ENGINE_CANNOT_ENFORCE',
    kind: 'infrastructure',
  });
}

async function networksOf({ client, id }: RunningContainer, signal?: AbortSignal): Promise<string[]> {
  const { NetworkSettings } = await client.call(
    'looking at the networks of a container',
    (abortSignal) => client.docker.getContainer(id).inspect({ abortSignal }),
    { signal },
  );
  return Object.keys(NetworkSettings.Networks ?? {});
}
