import pLimit from 'p-limit';
import { keptWorkspaces } from '../../bounds/sandbox.ts';
import type { Container } from '../../engine/container.ts';
import type { Workspaces } from '../../ledger/workspaces.ts';
import type { StreamSearch } from '../../redaction/redactor.ts';

/** What the search of a sandbox found. */
export type Searched = 'key' | 'no-key' | 'too-many';

/** Archives at a time. Most are a few kilobytes, and the time of a request decides. */
const atATime = 4;

/**
 * Looks for keys in everything that was created or changed in a container: in the contents, names and link
 * targets, as the engine gives them. No program of the container takes part, and nothing may run in it. One
 * round trip, and one or two more for each path. Throws `ENGINE_TOO_LARGE`.
 *
 * @param store knows the keys; if it knows none, nothing is read
 */
export async function searchChanges(
  container: Pick<Container, 'changes' | 'kindOf' | 'pack'>,
  store: Pick<Workspaces, 'search'>,
  signal: AbortSignal,
): Promise<Searched> {
  if (!store.search()) return 'no-key';
  const paths = await pathsToSearch(container);
  if (paths === undefined) return 'too-many';
  const limit = pLimit(atATime);
  const found = new AbortController();
  const either = AbortSignal.any([signal, found.signal]);
  const look = async ({ path, isAdded }: ChangedPath) => {
    if (either.aborted) return;
    // What changed in a folder has paths of its own.
    if (!isAdded && (await container.kindOf(path, either)) === 'folder') return;
    const search = store.search();
    if (search && (await hasKey(container, path, search, either))) found.abort(new Error('a key was found'));
  };
  const all = await Promise.allSettled(paths.map((path) => limit(() => look(path))));
  signal.throwIfAborted();
  if (found.signal.aborted) return 'key';
  for (const one of all) if (one.status === 'rejected') throw one.reason;
  return 'no-key';
}

interface ChangedPath {
  path: string;
  isAdded: boolean;
}

/** The changed files, and the topmost of the added folders; undefined if there are too many changes. */
async function pathsToSearch(container: Pick<Container, 'changes'>): Promise<ChangedPath[] | undefined> {
  const changes: ChangedPath[] = [];
  const added = new Set<string>();
  const parents = new Set<string>();
  for await (const { path, kind } of container.changes()) {
    if (kind === 'deleted') continue;
    if (changes.length >= keptWorkspaces.count.changes) return undefined;
    const isAdded = kind === 'added';
    changes.push({ path, isAdded });
    if (isAdded) added.add(path);
    parents.add(parentOf(path));
  }
  const paths = changes.filter(({ path, isAdded }) => {
    return isAdded ? !added.has(parentOf(path)) : !parents.has(path);
  });
  return paths.length > keptWorkspaces.count.paths ? undefined : paths;
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/'));
}

async function hasKey(
  container: Pick<Container, 'pack'>,
  path: string,
  search: StreamSearch,
  signal: AbortSignal,
): Promise<boolean> {
  using packed = await container.pack(path, { maxBytes: keptWorkspaces.bytes.archive, signal });
  for await (const chunk of packed.archive as AsyncIterable<Buffer>) if (search.push(chunk)) return true;
  return search.end();
}
