import { snapshotLabels } from '../labels.ts';
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
  const labels = { ...image.labels, ...snapshotLabels(port.clock.now()) };
  return port.containers.commit(id, { ...image, labels }, signal);
}
