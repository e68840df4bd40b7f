import { manifestChanges } from '../engine/archive/manifest.ts';
import type { FilesystemChange } from '../engine/container/changes.ts';
import { places } from './places.ts';
import type { WorkspaceState } from './workspace.ts';

/**
 * Workspace-relative paths that differ between two states: added, edited, deleted, or with another mode. A rename is both names. A
 * folder is named where it came or went empty, or has another mode, not for what happened inside it.
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

/** The same from the engine's list of changes, for workspaces too large to be read: it names a folder that went, not what was in it. */
export function changedFilesByEngine(changes: readonly FilesystemChange[]): string[] {
  const inside = changes.filter(({ path }) => path.startsWith(`${places.workspace}/`));
  // The engine names every folder on the way to a change; a path that others lie below is one of those.
  const ways = new Set(inside.map(({ path }) => path.slice(0, path.lastIndexOf('/'))));
  const named = inside.filter(({ path, kind }) => kind === 'deleted' || !ways.has(path));
  return named.map(({ path }) => path.slice(places.workspace.length + 1)).sort();
}
