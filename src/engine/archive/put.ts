import type { Readable } from 'node:stream';
import { pack } from 'tar-stream';
import { OffsiteError } from '../../offsite-error.ts';
import type { RunningContainer } from '../container/running-container.ts';
import type { NewEntry } from './entries.ts';

/**
 * Writes entries below the absolute folder `at` (which must exist) in one round trip. Throws an input error
 * before anything is sent if a path contains `..` or half a character (a lone surrogate).
 */
export async function putEntries(
  { port, id }: Pick<RunningContainer, 'port' | 'id'>,
  entries: Iterable<NewEntry>,
  at: string,
  signal?: AbortSignal,
): Promise<void> {
  const archive = pack();
  try {
    for (const entry of entries) addEntry(archive, entry);
    archive.finalize();
    await port.containers.putArchive(id, at, archive as unknown as Readable, signal);
  } finally {
    archive.destroy();
  }
}

function addEntry(archive: ReturnType<typeof pack>, entry: NewEntry): void {
  const name = relativeName(entry.path);
  if ('linkTarget' in entry) {
    archive.entry({ name, type: 'symlink', linkname: entry.linkTarget });
    return;
  }
  const owner = { uid: entry.uid ?? 0, gid: entry.gid ?? 0 };
  if ('folder' in entry) archive.entry({ name, type: 'directory', mode: entry.mode ?? 0o755, ...owner });
  else archive.entry({ name, mode: entry.mode ?? 0o644, ...owner }, entry.content);
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
