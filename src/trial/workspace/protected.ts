import type { ArchivedEntry } from '../../engine/archive/entries.ts';
import { type Manifest, readManifest } from '../../engine/archive/manifest.ts';
import type { Container } from '../../engine/container.ts';
import { globMatcher } from './globs.ts';

/**
 * The changed files that the case protects.
 *
 * @param filesChanged paths in the workspace; `.` if the whole workspace was removed
 */
export function protectedChanges(globs: readonly string[], filesChanged: readonly string[]): string[] {
  const matches = globMatcher(globs, true);
  // If a whole folder was replaced or removed, the list names only the folder.
  const isAbove = (path: string) => globs.some((glob) => glob.startsWith(`${path}/`) || path === '.');
  return filesChanged.filter((path) => matches(path) || isAbove(path));
}

/**
 * The content of a workspace's protected files, however many and large the other files are. For folders on
 * the way to them, only their type counts. Throws `ENGINE_TOO_LARGE` if all files of the workspace together
 * are larger than `maxBytes`.
 */
export function protectedState(
  container: Container,
  globs: readonly string[],
  maxBytes: number,
  signal: AbortSignal,
): Promise<Manifest> {
  return readManifest(protectedEntries(container.archive(container.workingDir, signal, maxBytes), globs));
}

async function* protectedEntries(
  archive: AsyncIterable<ArchivedEntry>,
  globs: readonly string[],
): AsyncGenerator<ArchivedEntry> {
  const matches = globMatcher(globs, true);
  for await (const entry of archive) {
    if (matches(entry.path)) yield entry;
    // A link that replaces a folder hides the files that were below it.
    else if (entry.type !== 'folder' && globs.some((glob) => glob.startsWith(`${entry.path}/`))) yield entry;
  }
}

/** The protected files out of a whole workspace's state. */
export function protectedPart(state: Manifest, globs: readonly string[]): Manifest {
  const matches = globMatcher(globs, true);
  return new Map([...state].filter(([path]) => matches(path)));
}
