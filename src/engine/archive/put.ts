import { pack } from 'tar-stream';
import { OffsiteError } from '../../base/offsite-error.ts';
import type { RunningContainer } from '../container/running-container.ts';
import type { NewEntries, NewEntry } from './entries.ts';
import { nodeReadable } from './node-readable.ts';

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
  const archive = pack();
  const stream = nodeReadable(archive);
  const put = () => port.containers.putArchive(id, at, stream, signal);
  try {
    if (Symbol.asyncIterator in entries) {
      await Promise.all([put(), addAll(archive, entries)]);
      return;
    }
    for (const entry of entries) addEntry(archive, entry);
    archive.finalize();
    await put();
  } finally {
    stream.destroy();
  }
}

type Archive = ReturnType<typeof pack>;

/** Adds entries as fast as the engine takes them, so that only one is in memory at a time. */
async function addAll(archive: Archive, entries: AsyncIterable<NewEntry>): Promise<void> {
  for await (const entry of entries)
    await new Promise<void>((resolve, reject) => {
      addEntry(archive, entry, (error) => (error ? reject(error) : resolve()));
    });
  archive.finalize();
}

function addEntry(archive: Archive, entry: NewEntry, added?: (error?: Error | null) => void): void {
  const name = relativeName(entry.path);
  if ('linkTarget' in entry) {
    archive.entry({ name, type: 'symlink', linkname: entry.linkTarget }, added);
    return;
  }
  const owner = { uid: entry.uid ?? 0, gid: entry.gid ?? 0 };
  if ('folder' in entry)
    archive.entry({ name, type: 'directory', mode: entry.mode ?? 0o755, ...owner }, added);
  else archive.entry({ name, mode: entry.mode ?? 0o644, ...owner }, entry.content, added);
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
