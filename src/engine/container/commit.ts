import { CREATED_LABEL, INSTANCE_LABEL, OWNED_LABEL, ROLE_LABEL } from '../labels.ts';
import type { CommitImage } from '../port/containers.ts';
import type { RunningContainer } from './running-container.ts';

/**
 * Creates an image of the container's files and resolves with its id. The container is not paused, so nothing
 * but init should run in it.
 */
export function commitContainer(
  { port, id }: RunningContainer,
  image: CommitImage,
  signal?: AbortSignal,
): Promise<string> {
  const labels = {
    ...image.labels,
    [OWNED_LABEL]: '1',
    [ROLE_LABEL]: 'snapshot',
    [CREATED_LABEL]: String(port.clock.now()),
    // The image outlives the instance: if its label named one, a sweep would find that instance dead.
    [INSTANCE_LABEL]: '',
  };
  return port.containers.commit(id, { ...image, labels }, signal);
}
