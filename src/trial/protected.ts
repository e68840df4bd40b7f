import type { ArchivedEntry } from '../engine/archive/entries.ts';
import { type Manifest, readManifest } from '../engine/archive/manifest.ts';
import type { Container } from '../engine/container.ts';
import { globMatcher } from './globs.ts';
import { sandboxPaths } from './sandbox-paths.ts';

/**
 * The changed files that the case protects. @param filesChanged paths in the workspace; `.` where all of it
 * went
 */
export function protectedChanges(globs: readonly string[], filesChanged: readonly string[]): string[] {
  const matches = globMatcher(globs, true);
  // A folder that was replaced or removed as a whole is named alone.
  const isAbove = (path: string) => globs.some((glob) => glob.startsWith(`${path}/`) || path === '.');
  return filesChanged.filter((path) => matches(path) || isAbove(path));
}

/**
 * What the protected files of a workspace hold, whatever else is there and however large. Folders on the way
 * to them count by their kind alone.
 */
export function protectedState(
  container: Container,
  globs: readonly string[],
  signal: AbortSignal,
): Promise<Manifest> {
  return readManifest(protectedEntries(container.archive(sandboxPaths.workspace, signal), globs));
}

async function* protectedEntries(
  archive: AsyncIterable<ArchivedEntry>,
  globs: readonly string[],
): AsyncGenerator<ArchivedEntry> {
  const matches = globMatcher(globs, true);
  for await (const entry of archive) {
    if (matches(entry.path)) yield entry;
    // A link in the place of a folder hides what was below it.
    else if (entry.type !== 'folder' && globs.some((glob) => glob.startsWith(`${entry.path}/`))) yield entry;
  }
}

/** What is protected of a whole workspace's state. */
export function protectedPart(state: Manifest, globs: readonly string[]): Manifest {
  const matches = globMatcher(globs, true);
  return new Map([...state].filter(([path]) => matches(path)));
}
