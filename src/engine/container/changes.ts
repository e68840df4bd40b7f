import type { RunningContainer } from './running-container.ts';

/** A path that differs from the container's image, folders among them. */
export interface FilesystemChange {
  path: string;
  kind: 'added' | 'modified' | 'deleted';
}

const KINDS = ['modified', 'added', 'deleted'] as const;

/** What the container changed against its image, sorted by path. A folder whose content changed is `modified` too. */
export async function listChanges({ client, id }: RunningContainer): Promise<FilesystemChange[]> {
  const answer: unknown = await client.call('listing what a container changed', (abortSignal) =>
    client.docker.getContainer(id).changes({ abortSignal }),
  );
  // No change at all is the body `null`, which dockerode hands on as the bytes it could not make an object of.
  const changes = Array.isArray(answer) ? (answer as { Path: string; Kind: 0 | 1 | 2 }[]) : [];
  return changes
    .map(({ Path, Kind }) => ({ path: Path, kind: KINDS[Kind] }))
    .sort((a, b) => (a.path < b.path ? -1 : 1));
}
