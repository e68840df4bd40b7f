import { manifestChanges } from '../engine/archive/manifest.ts';
import { namedChanges } from '../engine/changes/changed-paths.ts';
import type { Container } from '../engine/container.ts';
import { sandboxPaths } from './sandbox-paths.ts';
import type { WorkspaceState } from './workspace.ts';

/**
 * Workspace-relative paths that differ between two states: added, edited, deleted, or with another mode. A
 * rename is both names. A folder is named where it came or went empty, or has another mode, not for what
 * happened inside it.
 */
export function changedFiles(
  before: Exclude<WorkspaceState, 'large'>,
  after: Exclude<WorkspaceState, 'large'>,
): string[] {
  const changes = manifestChanges(before, after);
  const ways = new Set(changes.map(({ path }) => path.slice(0, Math.max(0, path.lastIndexOf('/')))));
  const isFolder = (path: string) => (after.get(path) ?? before.get(path))?.type === 'folder';
  return changes
    .filter(({ path, kind }) => path !== '' && (kind === 'modified' || !isFolder(path) || !ways.has(path)))
    .map(({ path }) => path);
}

/**
 * The same from the engine's list of changes, for workspaces too large to be read: it names a folder that
 * went, not what was in it. Of very many, the first ones.
 */
export async function changedFilesByEngine(container: Container): Promise<string[]> {
  const { changes } = await namedChanges(container, (path) => path.startsWith(`${sandboxPaths.workspace}/`));
  return changes.map(({ path }) => path.slice(sandboxPaths.workspace.length + 1)).sort();
}
