import type { FilesystemChange } from '../engine/container/changes.ts';
import type { Container } from '../engine/container.ts';
import { places } from './places.ts';

/**
 * Workspace-relative paths that differ from the prepared image: added, edited, deleted, or with another mode; `.` where the workspace
 * itself was removed. A folder is named where it came empty, went, or has another mode, not for what happened inside it.
 */
export function changedFiles(changes: readonly FilesystemChange[]): string[] {
  const inside = changes.filter(({ path }) => path.startsWith(`${places.workspace}/`));
  // The engine names every folder on the way to a change; a path that others lie below is one of those.
  const ways = new Set(inside.map(({ path }) => path.slice(0, path.lastIndexOf('/'))));
  const named = inside.filter(({ path, kind }) => kind === 'deleted' || !ways.has(path));
  const files = named.map(({ path }) => path.slice(places.workspace.length + 1));
  return [...(isRemoved(changes) ? ['.'] : []), ...files].sort();
}

/** Gives back a workspace that the harness removed, empty: what is graded is that nothing is there, not that nobody could look. */
export async function restoreWorkspace(
  container: Container,
  changes: readonly FilesystemChange[],
  signal: AbortSignal,
): Promise<void> {
  if (isRemoved(changes)) await container.put([{ path: places.workspace, folder: true }], '/', signal);
}

function isRemoved(changes: readonly FilesystemChange[]): boolean {
  return changes.some(({ path, kind }) => path === places.workspace && kind === 'deleted');
}
