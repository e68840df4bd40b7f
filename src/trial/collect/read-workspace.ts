import picomatch from 'picomatch';
import { pathLists, workspaceFiles } from '../../bounds/sandbox.ts';
import type { ArchivedEntry } from '../../engine/archive/entries.ts';
import type { ArchiveCopy } from '../../engine/archive/read.ts';
import { type Manifest, manifestChanges, readManifest } from '../../engine/archive/stored-file.ts';
import { changedPaths } from '../../engine/changes/changed-paths.ts';
import { PathRoom } from '../../engine/changes/layer-paths.ts';
import type { Container } from '../../engine/container.ts';
import { isEngineFailure } from '../../engine/port/failure.ts';

/** A workspace's entries by relative path, or `large` if it is too large to read as a whole. */
export type WorkspaceState = Manifest | 'large';

class TooLarge extends Error {}

/**
 * Reads the state of a sandbox's workspace. `visit` may read the content of entries on the way. If the result
 * is `large`, discard what `visit` has read. Throws `ENGINE_NOT_FOUND` if there is no workspace.
 */
export async function readWorkspace(
  container: Container,
  signal: AbortSignal,
  visit?: (entry: ArchivedEntry) => Promise<void>,
  copy?: ArchiveCopy,
): Promise<WorkspaceState> {
  try {
    const entries = container.archive(container.workingDir, signal, undefined, copy);
    return await readManifest(withinLimits(entries), visit);
  } catch (error) {
    if (error instanceof TooLarge) return 'large';
    throw error;
  }
}

async function* withinLimits(archive: AsyncIterable<ArchivedEntry>): AsyncGenerator<ArchivedEntry> {
  let bytes = 0;
  let entries = 0;
  const room = new PathRoom();
  for await (const entry of archive) {
    bytes += entry.size;
    entries += 1;
    const hasRoom = room.take(entry.path) && room.take(entry.linkTarget ?? '');
    const isLarge = bytes > workspaceFiles.bytes.whole || entries > workspaceFiles.count.entries;
    if (isLarge || !hasRoom) throw new TooLarge();
    yield entry;
  }
}

/** The maximum bytes of a workspace that is read as a whole. */
export const smallWorkspace = workspaceFiles.bytes.whole;

/** The bytes of a block, which a file takes at least in part, and so does its place in its folder. */
const blockBytes = 4096;

/**
 * The bytes of the disk that all files in a workspace take without holes. Call this only before the harness
 * runs: it has no limit.
 */
export async function workspaceBytes(container: Container, signal: AbortSignal): Promise<number> {
  let bytes = 0;
  for await (const { size } of container.archive(container.workingDir, signal))
    bytes += (Math.ceil(size / blockBytes) + 1) * blockBytes;
  return bytes;
}

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

/**
 * Returns a function that says whether a path matches one of the globs. An agent can make paths for which
 * matching takes seconds and blocks this process. So a path with more characters or folders than {@link
 * pathLists} allows is not matched at all.
 *
 * @param unmatched the result for such a path
 */
export function globMatcher(globs: readonly string[], unmatched: boolean): (path: string) => boolean {
  if (globs.length === 0) return () => false;
  // With the flag `s`, `**` also matches line breaks.
  const matches = picomatch([...globs], { dot: true, flags: 's' });
  return (path) => (isLong(path) ? unmatched : matches(path));
}

function isLong(path: string): boolean {
  return (
    path.length > pathLists.bytes.matched ||
    path.split('/', pathLists.count.matchedFolders + 2).length > pathLists.count.matchedFolders + 1
  );
}
