import { manifestChanges } from '../engine/archive/manifest.ts';
import { changedPaths } from '../engine/changes/changed-paths.ts';
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
 * The same for workspaces too large to be read, as the engine reports it: a folder that went is named, not
 * what was in it. Of very many, the first ones.
 */
export async function reportedFiles(container: Container, signal: AbortSignal): Promise<string[]> {
  const { paths } = await changedPaths(container, {
    wanted: 'reported',
    below: sandboxPaths.workspace,
    signal,
  });
  return paths.map((path) => path.slice(sandboxPaths.workspace.length + 1));
}
