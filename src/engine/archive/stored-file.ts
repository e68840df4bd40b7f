import { createHash, randomBytes } from 'node:crypto';
import { ignoreRemovalFailure, removeContainer } from '../container/remove.ts';
import type { ContainerRequest } from '../port/containers.ts';
import type { EnginePort } from '../port/engine-port.ts';
import { putEntries } from './put.ts';
import { readArchive } from './read.ts';

/** A file that many containers share, in a volume. */
export interface StoredFile {
  content: Buffer;
  /** The beginning of its name; default: none. */
  beginning?: string;
  /** The end of its name, such as `.json`. */
  ending: string;
  mode: number;
}

/** Where the volume is mounted in the helper, the container that reads and writes it. */
const folder = '/stored';

/**
 * Finds a file with this content in a volume, or writes one, and resolves with its name. Another process may
 * be writing such a file at the same moment, so a name proves nothing: the content is compared. An existing
 * file is never overwritten, because containers may use it. Three or four round trips, through a container
 * that is never started.
 *
 * @param like the image and labels of that container: any image will do, and a sweep needs the labels
 */
export async function storedFile(
  port: EnginePort,
  volume: string,
  file: StoredFile,
  like: Pick<ContainerRequest, 'imageId' | 'labels'>,
): Promise<string> {
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
    return (await found({ port, id }, file)) ?? (await written({ port, id }, file));
  } finally {
    await removeContainer(port, id).catch(ignoreRemovalFailure);
  }
}

interface Helper {
  port: EnginePort;
  id: string;
}

async function found(container: Helper, file: StoredFile): Promise<string | undefined> {
  const { content } = file;
  for await (const entry of readArchive(container, folder)) {
    if (entry.type !== 'file' || !entry.path.startsWith(nameOf(file))) continue;
    const chunks: Buffer[] = [];
    for await (const chunk of entry.content()) chunks.push(chunk);
    if (Buffer.concat(chunks).equals(content)) return entry.path;
  }
  return undefined;
}

async function written(container: Helper, file: StoredFile): Promise<string> {
  const { content, mode, ending } = file;
  const name = `${nameOf(file)}-${randomBytes(8).toString('hex')}${ending}`;
  await putEntries(container, [{ path: name, content, mode }], folder);
  return name;
}

function nameOf({ beginning = '', content }: StoredFile): string {
  return `${beginning}${createHash('sha256').update(content).digest('hex')}`;
}
