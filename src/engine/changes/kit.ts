import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { infrastructureError } from '../../base/offsite-error.ts';
import { longestPathList } from '../../base/path-room.ts';
import { pathLists } from '../../bounds/sandbox.ts';
import type { NewEntry } from '../archive/entries.ts';
import type { Container } from '../container.ts';

const printKit = readFileSync(new URL('./kit.sh', import.meta.url), 'utf8');

/**
 * GNU find with everything it needs to run, so that it works in a sandbox whose programs cannot be trusted.
 */
export interface Kit {
  /** Their paths are plain names without folders. */
  files: readonly NewEntry[];
  /** The name of the dynamic loader among `files`. */
  loader: string;
}

/**
 * Reads the kit from a sandbox in which no harness ran yet; undefined if it has no GNU find. Three round
 * trips.
 */
export async function readKit(fresh: Container, signal: AbortSignal): Promise<Kit | undefined> {
  const { ended, exitCode, stdout } = await fresh.exec({
    argv: ['/bin/sh', '-c', printKit],
    cwd: '/',
    env: { LC_ALL: 'C' },
    capBytes: pathLists.bytes.listing,
    timeoutMs: pathLists.time.listing,
    signal,
  });
  signal.throwIfAborted();
  if (ended !== 'exited' || exitCode !== 0 || stdout.truncated) return undefined;
  const files = stdout.text.trimEnd().split('\n').map(fileOf);
  const loader = files.find(({ path }) => path.startsWith('ld-'))?.path;
  return loader === undefined ? undefined : { files, loader };
}

function fileOf(line: string): NewEntry {
  const space = line.indexOf(' ');
  return { path: line.slice(0, space), content: Buffer.from(line.slice(space), 'base64'), mode: 0o755 };
}

interface ListingRequest {
  /** Folders to leave out. */
  except: readonly string[];
  signal: AbortSignal;
}

/**
 * Lists everything but folders that was created or changed in any way since the container was created. It
 * compares change times (ctime), which the kernel keeps and no process can set. The engine's own list of
 * changes compares modification times (mtime), which a process can set. Renamed files and new hard links
 * count too. Nothing may run in the container. Five round trips.
 */
export async function changedSinceMade(
  container: Container,
  kit: Kit,
  { except, signal }: ListingRequest,
): Promise<string[]> {
  // The name is random, so that nothing can have been put there in advance.
  const folder = `/offsite-${randomBytes(8).toString('hex')}`;
  const files = kit.files.map((file) => ({ ...file, path: `${folder}/${file.path}` }));
  const [madeAt] = await Promise.all([container.madeAt(signal), container.put(files, '/', signal)]);
  const { ended, exitCode, stdout } = await container.exec({
    // This uses neither the loader nor the libraries of the sandbox.
    argv: [
      ...`${folder}/${kit.loader} --library-path ${folder} ${folder}/find / -xdev (`.split(' '),
      ...except.flatMap((path) => ['-path', path, '-o']),
      ...`-path ${folder} ) -prune -o -newerct @${madeAt / 1000} ! -type d -printf %p\\0`.split(' '),
    ],
    env: { LC_ALL: 'C' },
    cwd: '/',
    // It writes nothing, but the harness may have used up the disk limit.
    diskBytes: Number.POSITIVE_INFINITY,
    capBytes: longestPathList(),
    timeoutMs: pathLists.time.listing,
    signal,
  });
  signal.throwIfAborted();
  // 1: it could not read some folder. More than 1: it did not finish.
  if (ended === 'exited' && exitCode <= 1 && !stdout.truncated) return stdout.text.split('\0').slice(0, -1);
  throw infrastructureError('SANDBOX_UNWITNESSED', 'The files of a sandbox could not be listed.');
}
