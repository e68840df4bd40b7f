import { posix } from 'node:path';
import type { ArchivedEntry } from '../../engine/archive/entries.ts';
import { type Manifest, readManifest } from '../../engine/archive/stored-file.ts';
import type { Container } from '../../engine/container.ts';
import { isBelow, nodeCaches, pythonCaches } from '../../record/tool-files.ts';
import { globMatcher } from './globs.ts';

/** What a case protects in the workspace: its files, without the caches of tools. */
interface Protection {
  globs: readonly string[];
  isCache(path: string): boolean;
}

export function protectionOf(spec: {
  protected: readonly string[];
  verifyPlace: { in: 'fresh' | 'same' };
  tests?: { fresh?: unknown } | undefined;
}): Protection {
  const globs = spec.protected;
  // Tests in the agent's sandbox may read any cache.
  if (spec.tests && !spec.tests.fresh) return { globs, isCache: () => false };
  return { globs, isCache: toolCaches(globs, spec.verifyPlace.in) };
}

/** What is not carried to where the work is graded. Undefined if all of it is. */
export function leftOutOf(spec: { protected: readonly string[] }): ((path: string) => boolean) | undefined {
  return spec.protected.length === 0 ? undefined : toolCaches(spec.protected, 'fresh');
}

/** The changed caches of tools that a case's globs would protect, as they are shown to a person. */
export function cachesAmong({ globs, isCache }: Protection, filesChanged: readonly string[]): string[] {
  const matches = globMatcher(globs, false);
  return filesChanged.filter((path) => isCache(path) && matches(path));
}

function matcherOf({ globs, isCache }: Protection): (path: string) => boolean {
  const matches = globMatcher(globs, true);
  return (path) => matches(path) && !isCache(path);
}

/** The globs that match none of the paths. */
export function unmatchedGlobs(globs: readonly string[], paths: Iterable<string>): string[] {
  const left = new Map(globs.map((glob) => [glob, globMatcher([glob], true)]));
  for (const path of paths) {
    if (left.size === 0) break;
    for (const [glob, matches] of left) if (matches(path)) left.delete(glob);
  }
  return [...left.keys()];
}

/**
 * The changed files that the case protects.
 *
 * @param filesChanged paths in the workspace; `.` if the whole workspace was removed
 */
export function protectedChanges(protection: Protection, filesChanged: readonly string[]): string[] {
  const { globs } = protection;
  const matches = matcherOf(protection);
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
  protection: Protection,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Manifest> {
  return readManifest(
    protectedEntries(container.archive(container.workingDir, signal, maxBytes), protection),
  );
}

async function* protectedEntries(
  archive: AsyncIterable<ArchivedEntry>,
  protection: Protection,
): AsyncGenerator<ArchivedEntry> {
  const { globs } = protection;
  const matches = matcherOf(protection);
  for await (const entry of archive) {
    if (matches(entry.path)) yield entry;
    // A link that replaces a folder hides the files that were below it.
    else if (entry.type !== 'folder' && globs.some((glob) => glob.startsWith(`${entry.path}/`))) yield entry;
  }
}

/** The protected files out of a whole workspace's state. */
export function protectedPart(state: Manifest, protection: Protection): Manifest {
  const matches = matcherOf(protection);
  return new Map([...state].filter(([path]) => matches(path)));
}

/**
 * Where the state that an agent left is graded: in a copy, from which caches can be left out, or in its
 * sandbox.
 */
type GradedIn = 'fresh' | 'same';

/**
 * The caches of tools among protected files. Running tests writes them, so they are not protected, and they
 * are not carried to where the work is graded. In the agent's own sandbox nothing can be left out, so there
 * only the caches that verify does not read are unprotected. A glob that names such a folder protects it.
 *
 * @returns a function that says whether a path in the workspace is such a cache, or in one
 */
function toolCaches(globs: readonly string[], gradedIn: GradedIn): (path: string) => boolean {
  if (globs.length === 0) return () => false;
  const folders = gradedIn === 'fresh' ? [...pythonCaches, ...nodeCaches] : pythonCaches;
  const names = folders.filter((folder) => !globs.some((glob) => glob.includes(posix.basename(folder))));
  return (path) => isBelow(path, names);
}
