import type { RunningContainer } from '../container/running-container.ts';
import { isEngineFailure } from '../port/failure.ts';

export type PathKind = 'folder' | 'nothing' | 'other';

/** What lies at an absolute path. */
export async function kindOfPath(
  { port, id }: RunningContainer,
  path: string,
  signal?: AbortSignal,
): Promise<PathKind> {
  try {
    return (await port.containers.isFolder(id, path, signal)) ? 'folder' : 'other';
  } catch (error) {
    if (isEngineFailure(error, 'not-found')) return 'nothing';
    throw error;
  }
}
