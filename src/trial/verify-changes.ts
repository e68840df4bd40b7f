import { createHash } from 'node:crypto';
import { posix } from 'node:path';
import pLimit from 'p-limit';
import { pathLists } from '../bounds/sandbox.ts';
import type { Manifest } from '../engine/archive/manifest.ts';
import type { Container } from '../engine/container.ts';
import { OffsiteError } from '../offsite-error.ts';
import { statePaths } from './sandbox-paths.ts';

/** What verify changes by itself in an untouched workspace. */
export interface OwnChanges {
  /** Contents by path, outside the workspace. */
  system: Contents;
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
 * The changes that verify does not make by itself: it never changes that path, or it leaves other content
 * there. In folders for state, it is enough that verify itself changes something of the same program.
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
 * `/var/lib/postgresql` for every path below it. Undefined outside the folders for state, and for paths that
 * are one of these folders or contain one.
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
      // A huge sparse file costs nothing to make. Such a file is never equal to another.
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
