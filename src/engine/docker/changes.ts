import type { FilesystemChange } from '../port/containers.ts';
import type { DockerClient } from './client.ts';
import { requestFailure } from './failure.ts';
import { streamedObjects } from './streamed-objects.ts';

const kinds = ['modified', 'added', 'deleted'] as const;
const doing = 'listing what a container changed';

/** Lists how the container differs from its image, while the answer arrives. */
export async function* listChanges(client: DockerClient, id: string): AsyncGenerator<FilesystemChange> {
  const answer = await client.askForStream(doing, { method: 'GET', path: `/containers/${id}/changes?` });
  try {
    for await (const change of streamedObjects(answer)) {
      const { Path, Kind } = change as { Path: string; Kind: 0 | 1 | 2 };
      yield { path: Path, kind: kinds[Kind] };
    }
  } catch (thrown) {
    throw requestFailure(doing, thrown);
  } finally {
    answer.destroy();
  }
}
