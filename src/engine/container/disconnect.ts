import { OffsiteError } from '../../offsite-error.ts';
import type { RunningContainer } from './running-container.ts';

/**
 * Takes a running container off every network, so that its own loopback is all it has; what was connected is
 * cut. It stays so when it is started again. Three round trips.
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
