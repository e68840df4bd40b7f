import { engineFailure } from '../failure.ts';
import type { RunningContainer } from './running-container.ts';
import { streamedObjects } from './streamed-objects.ts';

/** A path that differs from the container's image, folders among them. */
export interface FilesystemChange {
  path: string;
  kind: 'added' | 'modified' | 'deleted';
}

const KINDS = ['modified', 'added', 'deleted'] as const;
const doing = 'listing what a container changed';

/**
 * What the container changed against its image, as the engine tells it: there may be millions, so that nobody holds them all. A folder whose
 * content changed is `modified` too.
 */
export async function* listChanges({ client, id }: RunningContainer): AsyncGenerator<FilesystemChange> {
  const answer = await client.call(doing, (abortSignal) =>
    client.dialStream({ method: 'GET', path: `/containers/${id}/changes?`, expected: [200], abortSignal }),
  );
  try {
    for await (const change of streamedObjects(answer)) {
      const { Path, Kind } = change as { Path: string; Kind: 0 | 1 | 2 };
      yield { path: Path, kind: KINDS[Kind] };
    }
  } catch (thrown) {
    throw engineFailure(doing, thrown);
  } finally {
    answer.destroy();
  }
}
