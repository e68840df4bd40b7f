import { createHash, randomUUID } from 'node:crypto';
import { posix } from 'node:path';
import pLimit from 'p-limit';
import { OffsiteError } from '../../base/offsite-error.ts';
import { pathLists } from '../../bounds/sandbox.ts';
import type { Manifest } from '../../engine/archive/stored-file.ts';
import type { Container } from '../../engine/container.ts';
import { cachePaths, statePaths, stateRoots } from '../sandbox-paths.ts';

/** What verify changes by itself in an untouched workspace. */
export interface OwnChanges {
  /** Contents by path, outside the workspace. */
  system: Contents;
  /** Files that the image has in folders for caches and state. Undefined if they cannot be listed. */
  existing: ReadonlySet<string> | undefined;
  /** The protected files after verify ran. */
  protected: Manifest;
}

export type Contents = ReadonlyMap<string, string>;

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
