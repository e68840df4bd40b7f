import { createHash, randomBytes } from 'node:crypto';
import { ignoreRemovalFailure, removeContainer } from '../container/remove.ts';
import type { ContainerRequest } from '../port/containers.ts';
import type { EnginePort } from '../port/engine-port.ts';
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
