import { OffsiteError } from '../../base/offsite-error.ts';
import { keptWorkspaces } from '../../bounds/sandbox.ts';
import { snapshotLabels } from '../labels.ts';
import type { CommitImage } from '../port/containers.ts';
import { diskReserveReached, isReserveReached } from './disk-space.ts';
import { imageBytes, spaceOf } from './disk-use.ts';
import { hostFactsOf } from './host-facts.ts';
import type { RunningContainer } from './running-container.ts';

/**
 * Creates an image of the container's files and resolves with its id. The container is not paused, so nothing
 * but init should run in it. An image has no holes, and nothing ends an engine that makes one. So this throws
 * `IMAGE_TOO_LARGE` if the files are far longer than the container's disk limit, and `DISK_FULL` if the image
 * would take of the machine's own reserve.
 */
export async function commitContainer(
  container: RunningContainer,
  image: CommitImage,
  signal?: AbortSignal,
): Promise<string> {
  const { port, id, diskBytes } = container;
  if (diskBytes !== undefined) {
    const bytes = await imageBytes(container, signal);
    if (bytes > Math.max(diskBytes, keptWorkspaces.bytes.image)) throw imageTooLarge(bytes);
    const space = await spaceOf(container, signal);
    if (space && isReserveReached({ ...space, freeBytes: space.freeBytes - bytes })) {
      const [folder = ''] = (await hostFactsOf(container)).storage;
      throw diskReserveReached(folder, space, `an image would take ${Math.ceil(bytes / 2 ** 20)} MiB`);
    }
  }
  const labels = { ...image.labels, ...snapshotLabels(port.clock.now()) };
  return port.containers.commit(id, { ...image, labels }, signal);
}

function imageTooLarge(bytes: number): OffsiteError {
  const gibibytes = Math.floor(bytes / 2 ** 30);
  return new OffsiteError(
    `its files have ${gibibytes} GiB, and an image cannot keep the holes of sparse files`,
    {
      code: 'IMAGE_TOO_LARGE',
      kind: 'input',
      hint: 'Make sparse files shorter, or make them where they are needed.',
    },
  );
}
