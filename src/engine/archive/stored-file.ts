import { createHash, randomBytes } from 'node:crypto';
import { PathRoom, tooManyPaths } from '../../base/path-room.ts';
import { ignoreRemovalFailure, removeContainer } from '../container/remove.ts';
import type { ContainerRequest, FilesystemChange } from '../port/containers.ts';
import type { EnginePort } from '../port/engine-port.ts';
import type { ArchivedEntry, ArchivedType } from './entries.ts';
import { readArchive } from './read.ts';
import { putEntries } from './write-archive.ts';

/** A file that many containers share, in a volume. */
export interface StoredFile {
  content: Buffer;
  /** The beginning of its name; default: none. */
  beginning?: string;
  /** The end of its name, such as `.json`. */
  ending: string;
  mode: number;
}

/** Where a file with the wanted content is in the volume. */
export interface StoredName {
  name: string;
  /** Epoch milliseconds, by the clock of the machine that wrote it. */
  writtenAt: number;
}

/** Where the volume is mounted in the helper, the container that reads and writes it. */
const folder = '/stored';

/**
 * Finds files with these contents in a volume, or writes them, and resolves with their names, in the same
 * order. Another process may be writing such a file at the same moment, so a name proves nothing: the content
 * is compared. An existing file is never overwritten, because containers may use it. Three or four round
 * trips, through a container that is never started.
 *
 * @param like the image and labels of that container: any image will do, and a sweep needs the labels
 */
export async function storedFiles(
  port: EnginePort,
  volume: string,
  files: readonly StoredFile[],
  like: Pick<ContainerRequest, 'imageId' | 'labels'>,
): Promise<StoredName[]> {
  // The helper has no filter: on Podman, a filter is a stored file itself.
  const { id } = await port.containers.create({
    imageId: like.imageId,
    labels: like.labels,
    command: ['/never-started'],
    stdin: false,
    network: 'none',
    memoryBytes: 16 * 2 ** 20,
    pids: 1,
    capabilities: [],
    readOnlyRoot: true,
    mounts: [{ volume, path: folder, readOnly: false }],
  });
  try {
    const found = await foundFiles({ port, id }, files);
    const missing = files.filter((file) => !found.has(file));
    if (missing.length > 0) {
      const written = missing.map((file) => ({ ...file, path: newName(file) }));
      await putEntries({ port, id }, written, folder);
      for (const [index, { path }] of written.entries())
        found.set(missing[index] as StoredFile, { name: path, writtenAt: port.clock.now() });
    }
    return files.map((file) => found.get(file) as StoredName);
  } finally {
    await removeContainer(port, id).catch(ignoreRemovalFailure);
  }
}

async function foundFiles(
  helper: { port: EnginePort; id: string },
  files: readonly StoredFile[],
): Promise<Map<StoredFile, StoredName>> {
  const found = new Map<StoredFile, StoredName>();
  for await (const entry of readArchive(helper, folder)) {
    const file = files.find((one) => entry.type === 'file' && entry.path.startsWith(beginningOf(one)));
    if (!file || found.has(file)) continue;
    if (Buffer.concat(await Array.fromAsync(entry.content())).equals(file.content))
      found.set(file, { name: entry.path, writtenAt: entry.modifiedAt });
  }
  return found;
}

function newName(file: StoredFile): string {
  return `${beginningOf(file)}-${randomBytes(8).toString('hex')}${file.ending}`;
}

function beginningOf({ beginning = '', content }: StoredFile): string {
  return `${beginning}${createHash('sha256').update(content).digest('hex')}`;
}

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
