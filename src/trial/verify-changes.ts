import { createHash } from 'node:crypto';
import { posix } from 'node:path';
import pLimit from 'p-limit';
import { pathLists } from '../bounds/sandbox.ts';
import type { Container } from '../engine/container.ts';
import { OffsiteError } from '../offsite-error.ts';
import { statePlaces } from './places.ts';

/** What verify itself changes outside the workspace, where nothing of an agent's is: contents by path. */
export type OwnChanges = ReadonlyMap<string, string>;

/** Reads what the changed paths hold now. */
export async function contentsOf(
  container: Container,
  paths: readonly string[],
  signal: AbortSignal,
): Promise<OwnChanges> {
  const limit = pLimit(pathLists.count.comparedAtATime);
  const compared = paths.slice(0, pathLists.count.compared);
  const contents = await Promise.all(
    compared.map((path) => limit(async () => [path, await contentOf(container, path, signal)] as const)),
  );
  return new Map(contents);
}

/**
 * Those of the changes that verify does not make by itself: it never changes that path, or leaves something else there.
 * Where programs keep state, it is enough that verify changes something of the same program.
 */
export async function unexplained(
  container: Container,
  paths: readonly string[],
  own: OwnChanges,
  signal: AbortSignal,
): Promise<string[]> {
  const ownState = new Set([...own.keys()].flatMap((path) => stateEntry(path) ?? []));
  const left = paths.filter((path) => !ownState.has(stateEntry(path) ?? ''));
  const known = left.filter((path) => own.has(path));
  const contents = await contentsOf(container, known, signal);
  return left.filter((path) => !own.has(path) || own.get(path) !== contents.get(path));
}

/** `/var/lib/postgresql` of all that is below it; undefined outside of the places for state. */
function stateEntry(path: string): string | undefined {
  const place = statePlaces.find((one) => path.startsWith(`${one}/`));
  if (place === undefined) return undefined;
  const [entry = ''] = path.slice(place.length + 1).split('/');
  return posix.join(place, entry);
}

async function contentOf(container: Container, path: string, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  try {
    for await (const { type, mode, linkTarget, content } of container.archive(path, signal)) {
      hash.update(JSON.stringify([type, mode, linkTarget]));
      for await (const chunk of content()) hash.update(chunk);
    }
  } catch (error) {
    if (error instanceof OffsiteError && error.code === 'ENGINE_NOT_FOUND') return 'nothing';
    throw error;
  }
  return hash.digest('hex');
}
