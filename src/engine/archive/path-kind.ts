import type { IncomingMessage } from 'node:http';
import { OffsiteError } from '../../offsite-error.ts';
import type { RunningContainer } from '../container/running-container.ts';

export type PathKind = 'folder' | 'nothing' | 'other';

/** An answer of the engine that describes the path asked for in a header. */
export interface DescribedPath {
  headers?: Record<string, string | undefined>;
}

/** The bit of a folder in Go's file modes, which the header carries. */
const GO_FOLDER_BIT = 2 ** 31;

/** What lies at an absolute path. */
export async function kindOfPath(
  { client, id }: RunningContainer,
  path: string,
  signal?: AbortSignal,
): Promise<PathKind> {
  try {
    const answer = await client.call(
      `looking for ${path} in a container`,
      (abortSignal) => client.docker.getContainer(id).infoArchive({ path, abortSignal }),
      { signal },
    );
    // An answer without a body, too, holds its connection until it was read.
    (answer as unknown as IncomingMessage).resume();
    return isFolder(answer as DescribedPath) ? 'folder' : 'other';
  } catch (error) {
    if (error instanceof OffsiteError && error.code === 'ENGINE_NOT_FOUND') return 'nothing';
    throw error;
  }
}

/** Whether what is described is a folder; a link to one is none. The header's value is JSON in base64. */
export function isFolder({ headers }: DescribedPath): boolean {
  const stat = headers?.['x-docker-container-path-stat'] ?? '';
  const { mode } = JSON.parse(Buffer.from(stat, 'base64').toString() || '{}') as { mode?: number };
  return mode !== undefined && Math.floor(mode / GO_FOLDER_BIT) % 2 === 1;
}
