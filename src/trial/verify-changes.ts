import { createHash } from 'node:crypto';
import { posix } from 'node:path';
import pLimit from 'p-limit';
import { pathLists } from '../bounds/sandbox.ts';
import type { Manifest } from '../engine/archive/manifest.ts';
import type { Container } from '../engine/container.ts';
import { OffsiteError } from '../offsite-error.ts';
import { statePaths } from './sandbox-paths.ts';

/** What verify itself changes, where nothing of an agent's is. */
export interface OwnChanges {
  /** Outside the workspace: contents by path. */
  system: Contents;
  /** What it leaves of the protected files. */
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
 * Those of the changes that verify does not make by itself: it never changes that path, or leaves something
 * else there. Where programs keep state, it is enough that verify changes something of the same program.
 */
export async function unexplained(
  container: Container,
  paths: readonly string[],
  own: Contents,
  signal: AbortSignal,
): Promise<string[]> {
  const ownState = new Set([...own.keys()].flatMap((path) => stateEntry(path) ?? []));
  const left = paths.filter((path) => !ownState.has(stateEntry(path) ?? ''));
  const known = left.filter((path) => own.has(path));
  const contents = await contentsOf(container, known, signal);
  return left.filter((path) => !own.has(path) || own.get(path) !== contents.get(path));
}

/**
 * `/var/lib/postgresql` of all that is below it; undefined outside of the folders for state, and of what is
 * one of them or holds one.
 */
function stateEntry(path: string): string | undefined {
  const folder = statePaths.findLast((one) => path.startsWith(`${one}/`));
  if (folder === undefined) return undefined;
  const [name = ''] = path.slice(folder.length + 1).split('/');
  const entry = posix.join(folder, name);
  return statePaths.some((one) => one === entry || one.startsWith(`${entry}/`)) ? undefined : entry;
}

async function contentOf(container: Container, path: string, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  try {
    for await (const { type, mode, size, linkTarget, content } of container.archive(path, signal)) {
      // A file without end, which costs nothing to make, is like no other.
      if (size > pathLists.bytes.compared) return `${path} of ${size} bytes`;
      hash.update(JSON.stringify([type, mode, linkTarget]));
      for await (const chunk of content()) hash.update(chunk);
    }
  } catch (error) {
    if (error instanceof OffsiteError && error.code === 'ENGINE_NOT_FOUND') return 'nothing';
    throw error;
  }
  return hash.digest('hex');
}
