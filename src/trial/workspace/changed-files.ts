import { manifestChanges } from '../../engine/archive/stored-file.ts';
import { changedPaths } from '../../engine/changes/changed-paths.ts';
import type { Container } from '../../engine/container.ts';
import { isEngineFailure } from '../../engine/port/failure.ts';
import type { WorkspaceState } from './read-workspace.ts';

/**
 * Workspace-relative paths that differ between two states: added, edited, deleted, or with another mode. A
 * rename gives both names. A folder is listed if it was added or removed empty or has another mode, not
 * because something inside it changed.
 */
export function changedFiles(
  before: Exclude<WorkspaceState, 'large'>,
  after: Exclude<WorkspaceState, 'large'>,
): string[] {
  const changes = manifestChanges(before, after);
  const parents = new Set(changes.map(({ path }) => path.slice(0, Math.max(0, path.lastIndexOf('/')))));
  const isFolder = (path: string) => (after.get(path) ?? before.get(path))?.type === 'folder';
  return changes
    .filter(({ path, kind }) => path !== '' && (kind === 'modified' || !isFolder(path) || !parents.has(path)))
    .map(({ path }) => path);
}

/**
 * The same, for workspaces that are too large to read: from the sandbox's own layer, or from the engine's
 * list of changes. It names a deleted folder but not the files in it. If there are very many changes, it
 * returns only the first ones. An engine that lists no changes, for example because a path is too long for
 * it, leaves only the workspace itself to name.
 */
export async function reportedFiles(container: Container, signal: AbortSignal): Promise<string[]> {
  const { workingDir } = container;
  try {
    const { paths } = await changedPaths(container, { wanted: 'reported', below: workingDir, signal });
    return paths.map((path) => path.slice(workingDir.length + 1));
  } catch (error) {
    if (!isEngineFailure(error, 'refused')) throw error;
    return ['.'];
  }
}
