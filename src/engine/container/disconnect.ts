import { OffsiteError } from '../../base/offsite-error.ts';
import type { RunningContainer } from './running-container.ts';

/**
 * Disconnects a running container from every network, so that only its loopback is left; open connections are
 * cut. It stays disconnected when it is started again. Three round trips.
 */
export async function disconnectContainer(
  { port: { containers }, id }: RunningContainer,
  signal?: AbortSignal,
): Promise<void> {
  const { networks } = await containers.state(id, signal);
  for (const network of networks) await containers.disconnect(id, network, signal);
  const left = (await containers.state(id, signal)).networks;
  if (left.length === 0) return;
  throw new OffsiteError(`The engine left a container on its network (${left.join(', ')}).`, {
    code: 'ENGINE_CANNOT_ENFORCE',
    kind: 'infrastructure',
  });
}
