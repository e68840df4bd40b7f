import { OffsiteError } from '../../base/offsite-error.ts';
import type { RunningContainer } from '../container/running-container.ts';
import type { NewEntries, NewEntry } from './entries.ts';
import { tarArchive, type WrittenEntry } from './write-archive.ts';

/**
 * Writes entries below the absolute folder `at` (which must exist) in one round trip. Throws an input error
 * before anything is sent if a path contains `..` or half a character (a lone surrogate).
 */
export async function putEntries(
  { port, id }: Pick<RunningContainer, 'port' | 'id'>,
  entries: NewEntries,
  at: string,
  signal?: AbortSignal,
): Promise<void> {
  const isStreamed = Symbol.asyncIterator in entries;
  const stream = tarArchive(isStreamed ? writtenEach(entries) : [...entries].map(written));
  // The engine never answers a request whose body breaks off.
  const broken = new Promise<never>((_, reject) => stream.on('error', reject));
  try {
    await Promise.race([port.containers.putArchive(id, at, stream, signal), broken]);
  } finally {
    stream.destroy();
  }
}

async function* writtenEach(entries: AsyncIterable<NewEntry>): AsyncGenerator<WrittenEntry> {
  for await (const entry of entries) yield written(entry);
}

function written({ path, ...entry }: NewEntry): WrittenEntry {
  const name = relativeName(path);
  if (!('folder' in entry)) return { name, ...entry };
  const { folder, ...facts } = entry;
  return { name, isFolder: folder, ...facts };
}

function relativeName(path: string): string {
  const parts = path.split('/').filter((part) => part !== '' && part !== '.');
  if (parts.length === 0 || parts.includes('..') || path.includes('\0') || !path.isWellFormed()) {
    throw new OffsiteError(`Not a path for a file in a container: ${JSON.stringify(path)}`, {
      code: 'ENGINE_UNSAFE_PATH',
      kind: 'input',
      hint: 'Use a path of whole characters, without "..".',
    });
  }
  return parts.join('/');
}
