import pLimit from 'p-limit';
import { keptWorkspaces } from '../../bounds/sandbox.ts';
import { type ChangedContent, changedContents } from '../../engine/changes/changed-contents.ts';
import type { Container } from '../../engine/container.ts';
import type { Workspaces } from '../../ledger/workspaces.ts';
import type { StreamSearch } from '../../redaction/redactor.ts';

/** What the search of a sandbox found. */
export type Searched = 'key' | 'no-key' | 'too-many';

/** Archives at a time. Most have only a few kilobytes, so most of the time goes into round trips. */
const atATime = 4;

/**
 * Looks for keys in everything that was created or changed in a container: in the contents, names and link
 * targets, as the engine gives them. No program of the container takes part, and nothing may run in it. Two
 * round trips, and one or two more for each path. Throws `ENGINE_TOO_LARGE`.
 *
 * @param store knows the keys; if it knows none, nothing is read
 */
export async function searchChanges(
  container: Pick<Container, 'changes' | 'layerPaths' | 'kindOf' | 'pack'>,
  store: Pick<Workspaces, 'search'>,
  signal: AbortSignal,
): Promise<Searched> {
  if (!store.search()) return 'no-key';
  const most = {
    changes: keptWorkspaces.count.changes,
    contents: keptWorkspaces.count.contents,
  };
  const contents = await changedContents(container, { most, signal });
  if (contents === undefined) return 'too-many';
  const limit = pLimit(atATime);
  const found = new AbortController();
  const either = AbortSignal.any([signal, found.signal]);
  const look = async ({ path, isAdded }: ChangedContent) => {
    if (either.aborted) return;
    // What changed inside a folder is listed under its own path.
    if (!isAdded && (await container.kindOf(path, either)) === 'folder') return;
    const search = store.search();
    if (search && (await hasKey(container, path, search, either))) found.abort(new Error('a key was found'));
  };
  const all = await Promise.allSettled(contents.map((content) => limit(() => look(content))));
  signal.throwIfAborted();
  if (found.signal.aborted) return 'key';
  for (const one of all) if (one.status === 'rejected') throw one.reason;
  return 'no-key';
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
