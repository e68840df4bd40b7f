import { createHash, randomBytes } from 'node:crypto';
import type { RunningContainer } from '../container/running-container.ts';
import { putEntries } from './put.ts';
import { readArchive } from './read.ts';

/** A file that many containers share, in a folder that is a volume. */
export interface StoredFile {
  content: Buffer;
  /** The end of its name, such as `.json`. */
  ending: string;
  mode: number;
}

/**
 * The name of a file with this content in a folder of a container that never runs. Writes it if there is none.
 * Another agent may write one at the same moment, so a name proves nothing: the content is compared. A file
 * that is there is never written again, because containers may use it. One or two round trips.
 */
export async function storedFile(
  container: Pick<RunningContainer, 'port' | 'id'>,
  folder: string,
  { content, ending, mode }: StoredFile,
  signal?: AbortSignal,
): Promise<string> {
  const hash = createHash('sha256').update(content).digest('hex');
  for await (const entry of readArchive(container, folder, signal)) {
    if (entry.type !== 'file' || !entry.path.startsWith(hash)) continue;
    const chunks: Buffer[] = [];
    for await (const chunk of entry.content()) chunks.push(chunk);
    if (Buffer.concat(chunks).equals(content)) return entry.path;
  }
  const name = `${hash}-${randomBytes(8).toString('hex')}${ending}`;
  await putEntries(container, [{ path: name, content, mode }], folder, signal);
  return name;
}
