import { createHash, randomUUID } from 'node:crypto';
import { posix } from 'node:path';
import pLimit from 'p-limit';
import { OffsiteError } from '../../base/offsite-error.ts';
import { pathLists } from '../../bounds/sandbox.ts';
import type { ArchivedEntry } from '../../engine/archive/entries.ts';
import { type Manifest, readManifest } from '../../engine/archive/stored-file.ts';
import { changedPaths } from '../../engine/changes/changed-paths.ts';
import type { Kit } from '../../engine/changes/kit.ts';
import type { Container } from '../../engine/container.ts';
import { isBelow, nodeCaches, pythonCaches } from '../../record/tool-files.ts';
import type { VerifyPlace } from '../../suite/plan.ts';
import { globMatcher } from '../collect/read-workspace.ts';
import { cachePaths, notTheSystem, scratchPaths, statePaths, stateRoots } from '../prepare/environment.ts';

export interface PathList {
  paths: string[];
  /** The number of all paths, listed or not. */
  count: number;
}

/** What changed outside the workspace in the sandbox that graded the work. */
export interface SystemChanges {
  /** Changes that the case lists as part of the work (`keep`). */
  kept: PathList;
  /** All other changes, except those that the case ignores. */
  unexpected: PathList;
  /** Those of the others that are in folders of temporary files, logs and caches, if they count apart. */
  caches?: PathList | undefined;
}

export interface SystemChangesRequest {
  kit: Kit | undefined;
  place: Pick<VerifyPlace, 'in' | 'keep' | 'ignore'>;
  /** Paths that had changed in the trial, if the container was made from what it left. */
  earlier?: readonly string[] | undefined;
  signal: AbortSignal;
}

/**
 * The paths that were changed, created or deleted outside the workspace. In the harness's own sandbox, only
 * the case's lists say what may change. In a fresh sandbox, the usual folders for caches, logs and temporary
 * files may change too. Nothing may run in the container meanwhile.
 */
export async function systemChanges(
  container: Container,
  { kit, place, earlier = [], signal }: SystemChangesRequest,
): Promise<{ kept: string[]; unexpected: string[] }> {
  const except = [container.workingDir, ...(place.in === 'same' ? notTheSystem : scratchPaths)];
  const changed = await changedPaths(container, { wanted: 'every', except, kit, signal });
  const paths = earlier.length > 0 ? [...new Set([...earlier, ...changed.paths])].sort() : changed.paths;
  const isKept = globMatcher(place.keep, false);
  const isIgnored = globMatcher(place.ignore, false);
  return {
    kept: paths.filter(isKept),
    unexpected: paths.filter((path) => !isKept(path) && !isIgnored(path)),
  };
}

/** Counts changes apart where every program may write: an honest agent leaves hundreds of them. */
export function cachesApart({ kept, unexpected }: Record<'kept' | 'unexpected', string[]>): SystemChanges {
  const isScratch = (path: string) =>
    isCache(path) || scratchPaths.some((one) => `${path}/`.startsWith(`${one}/`));
  const caches = unexpected.filter(isScratch);
  return {
    kept: listed(kept),
    unexpected: listed(unexpected.filter((path) => !isScratch(path))),
    ...(caches.length > 0 && { caches: listed(caches) }),
  };
}

export function listed(paths: readonly string[]): PathList {
  return { paths: paths.slice(0, pathLists.count.outside), count: paths.length };
}

/**
 * The paths as people read them: as JSON strings, because names may hold line breaks and terminal control
 * characters.
 */
export function shownPaths(paths: readonly string[]): string {
  const shown = paths.slice(0, pathLists.count.shown).map((path) => JSON.stringify(path));
  const more = paths.length > shown.length ? ` and ${paths.length - shown.length} more` : '';
  return `${shown.join(', ')}${more}`;
}

/** What verify changes by itself in an untouched workspace. */
export interface OwnChanges {
  /** Contents by path, outside the workspace. */
  system: Contents;
  /** Files that the image has in folders for caches and state. Undefined if they cannot be listed. */
  existing: ReadonlySet<string> | undefined;
  /** The protected files after verify ran. */
  protected: Manifest;
}

type Contents = ReadonlyMap<string, string>;

/** Reads what the changed paths hold now. */
export async function contentsOf(
  container: Container,
  paths: readonly string[],
  signal: AbortSignal,
): Promise<Contents> {
  const limit = pLimit(pathLists.count.comparedAtATime);
  const compared = paths.slice(0, pathLists.count.compared);
  const contents = await Promise.all(
    compared.map((path) => limit(async () => [path, await contentOf(container, path, signal)] as const)),
  );
  return new Map(contents);
}

/**
 * Lists what the image has in folders for caches and state. Call it before anything runs in the container.
 * Undefined if the image has no `find`, or more paths than are read: then a changed file in a cache cannot be
 * distinguished from a new one, and is excused.
 */
export async function existingPaths(
  container: Container,
  signal: AbortSignal,
): Promise<ReadonlySet<string> | undefined> {
  const result = await container.exec({
    argv: ['/bin/sh', '-c', 'exec find "$@" -print0 2> /dev/null', 'sh', ...stateRoots],
    user: '0',
    cwd: '/',
    capBytes: pathLists.bytes.listing,
    timeoutMs: pathLists.time.listing,
    signal,
  });
  signal.throwIfAborted();
  // It exits with 1 if a folder is missing.
  if (result.ended !== 'exited' || result.exitCode > 1 || result.stdout.truncated) return undefined;
  return new Set(result.stdout.text.split('\0'));
}

/**
 * The changes that verify does not make by itself: verify never changes that path, or leaves other content
 * there. New files are allowed in caches, and in entries for state where verify itself changes something.
 * Files that the image has there may change only if verify itself changes them.
 */
export async function unexplained(
  container: Container,
  paths: readonly string[],
  { system: own, existing }: Pick<OwnChanges, 'system' | 'existing'>,
  signal: AbortSignal,
): Promise<string[]> {
  // A program that writes its cache has not written its state: npm's logs do not excuse what npx runs.
  const ownPaths = [...own.keys()].filter((path) => !isCache(path));
  const ownState = new Set(ownPaths.flatMap((path) => stateEntry(path) ?? []));
  const isFree = (path: string) => isCache(path) || ownState.has(stateEntry(path) ?? '');
  const left = paths.filter((path) => !isFree(path) || (existing?.has(path) === true && !own.has(path)));
  const known = left.filter((path) => own.has(path));
  const contents = await contentsOf(container, known, signal);
  return left.filter((path) => !own.has(path) || own.get(path) !== contents.get(path));
}

/** Whether a path is in a cache. The content of such a path says nothing; only its existence counts. */
export function isCache(path: string): boolean {
  const { inRoot } = homeOf(path);
  return cachePaths.some((folder) => inRoot === folder || inRoot.startsWith(`${folder}/`));
}

/**
 * `/var/lib/postgresql` for every path below it. Undefined outside the folders for state, and for paths that
 * are one of these folders or contain one.
 */
function stateEntry(path: string): string | undefined {
  const { home, inRoot } = homeOf(path);
  const folder = statePaths.findLast((one) => inRoot.startsWith(`${one}/`));
  if (folder === undefined) return undefined;
  const [name = ''] = inRoot.slice(folder.length + 1).split('/');
  const entry = posix.join(folder, name);
  const holdsState = statePaths.some((one) => one === entry || one.startsWith(`${entry}/`));
  return holdsState ? undefined : entry.replace(/^\/root(?=\/)/, home);
}

/** The home that a path is in, and the path as it would be in root's. */
function homeOf(path: string): { home: string; inRoot: string } {
  const home = /^\/home\/[^/]+(?=\/)/.exec(path)?.[0] ?? '/root';
  return { home, inRoot: path.startsWith(`${home}/`) ? `/root${path.slice(home.length)}` : path };
}

async function contentOf(container: Container, path: string, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  try {
    const most = pathLists.bytes.compared;
    for await (const { type, mode, linkTarget, content } of container.archive(path, signal, most)) {
      hash.update(JSON.stringify([type, mode, linkTarget]));
      for await (const chunk of content()) hash.update(chunk);
    }
  } catch (error) {
    if (!(error instanceof OffsiteError)) throw error;
    if (error.code === 'ENGINE_NOT_FOUND') return 'nothing';
    // Huge sparse files cost nothing to make. They are never equal to others.
    if (error.code === 'ENGINE_TOO_LARGE') return `too large: ${randomUUID()}`;
    throw error;
  }
  return hash.digest('hex');
}

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
