import { createHash } from 'node:crypto';
import { PathRoom, tooManyPaths } from '../changes/path-room.ts';
import type { FilesystemChange } from '../port/containers.ts';
import type { ArchivedEntry, ArchivedType } from './entries.ts';

/** The facts that are compared to detect a change. Times are left out: touching a file does not change it. */
export interface FileFacts {
  type: ArchivedType;
  mode: number;
  /** Of a file's content, in hex. */
  sha256: string | undefined;
  linkTarget: string | undefined;
}

/** The state of a folder: facts by relative path, the folder itself under ''. */
export type Manifest = ReadonlyMap<string, FileFacts>;

/**
 * Reads a folder's state from its archive, hashing while it streams. `visit` may read the content of entries;
 * all content is hashed, whether read or not. Throws `SANDBOX_UNWITNESSED` if there are too many entries.
 * Comparing two such states finds changes exactly, and much faster than the engine's own list of changes,
 * which walks the whole image.
 */
export async function readManifest(
  entries: AsyncIterable<ArchivedEntry>,
  visit: (entry: ArchivedEntry) => Promise<void> = async () => undefined,
): Promise<Manifest> {
  const manifest = new Map<string, FileFacts>();
  const room = new PathRoom();
  for await (const entry of entries) {
    const { path, type, mode, linkTarget } = entry;
    if (!room.take(path) || !room.take(linkTarget ?? '')) throw tooManyPaths();
    // A hard link is its file under another name; either name may come first.
    const linked = type === 'hardlink' ? manifest.get(linkTarget ?? '') : undefined;
    if (linked !== undefined) {
      await visit(entry);
      manifest.set(path, linked);
      continue;
    }
    const hash = createHash('sha256');
    const content = hashing(entry.content(), hash);
    await visit({ ...entry, content: () => content });
    for await (const _ of content);
    manifest.set(path, { type, mode, linkTarget, sha256: type === 'file' ? hash.digest('hex') : undefined });
  }
  return manifest;
}

/**
 * Hashes everything that passes through. A reader that stops early does not end it, so the rest can still be
 * read.
 */
function hashing(source: AsyncIterable<Buffer>, hash: ReturnType<typeof createHash>): AsyncIterable<Buffer> {
  const chunks = source[Symbol.asyncIterator]();
  const next = async (): Promise<IteratorResult<Buffer>> => {
    const result = await chunks.next();
    if (!result.done) hash.update(result.value);
    return result;
  };
  return { [Symbol.asyncIterator]: () => ({ next }) };
}

/**
 * How a folder changed between two states, sorted by path: in content, type, mode or link target.
 * A rename is a deletion and an addition.
 */
export function manifestChanges(before: Manifest, after: Manifest): FilesystemChange[] {
  const changes: FilesystemChange[] = [];
  for (const path of new Set([...before.keys(), ...after.keys()])) {
    const was = before.get(path);
    const is = after.get(path);
    if (was === undefined) changes.push({ path, kind: 'added' });
    else if (is === undefined) changes.push({ path, kind: 'deleted' });
    else if (!sameFacts(was, is)) changes.push({ path, kind: 'modified' });
  }
  return changes.sort((a, b) => (a.path < b.path ? -1 : 1));
}

function sameFacts(one: FileFacts, other: FileFacts): boolean {
  return (
    one.type === other.type &&
    one.mode === other.mode &&
    one.sha256 === other.sha256 &&
    one.linkTarget === other.linkTarget
  );
}
