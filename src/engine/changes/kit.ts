import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { pathLists } from '../../bounds/sandbox.ts';
import { OffsiteError } from '../../offsite-error.ts';
import type { NewFile } from '../archive/entries.ts';
import type { Container } from '../container.ts';
import { longestPathList } from './path-room.ts';

const printKit = readFileSync(new URL('./kit.sh', import.meta.url), 'utf8');

/**
 * GNU find with all that it takes to run, so that it works in a sandbox of which no program is to be
 * believed.
 */
export interface Kit {
  /** Their paths are mere names. */
  files: readonly NewFile[];
  /** The name of that which runs the others. */
  loader: string;
}

/**
 * The kit of a sandbox in which no harness ran yet; undefined where that has no GNU find. Three round trips.
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

function fileOf(line: string): NewFile {
  const space = line.indexOf(' ');
  return { path: line.slice(0, space), content: Buffer.from(line.slice(space), 'base64'), mode: 0o755 };
}

interface ListingRequest {
  /** Folders that are not listed. */
  except: readonly string[];
  signal: AbortSignal;
}

/**
 * All but folders that were made or changed in any way since the container was made. Told by the times of
 * files' last change, which the kernel keeps and which no process can set, unlike those of their content,
 * which the engine's own list of changes goes by. A file that came by a rename or as a second name of another
 * counts too. In the container nothing may run. Five round trips.
 */
export async function changedSinceMade(
  container: Container,
  kit: Kit,
  { except, signal }: ListingRequest,
): Promise<string[]> {
  // Of a name that nobody could foresee, who might have put something there.
  const folder = `/offsite-${randomBytes(8).toString('hex')}`;
  const files = kit.files.map((file) => ({ ...file, path: `${folder}/${file.path}` }));
  const [madeAt] = await Promise.all([container.madeAt(signal), container.put(files, '/', signal)]);
  const { ended, exitCode, stdout } = await container.exec({
    // Neither the system's loader nor its libraries have a part in this.
    argv: [
      ...[`${folder}/${kit.loader}`, '--library-path', folder, `${folder}/find`, '/', '-xdev'],
      ...['(', ...except.flatMap((path) => ['-path', path, '-o']), '-path', folder, ')', '-prune', '-o'],
      ...['-newerct', `@${madeAt / 1000}`, '!', '-type', 'd', '-printf', '%p\\0'],
    ],
    env: { LC_ALL: 'C' },
    cwd: '/',
    // It writes nothing, and the harness may have been ended for writing too much.
    diskBytes: Number.POSITIVE_INFINITY,
    capBytes: longestPathList(),
    timeoutMs: pathLists.time.listing,
    signal,
  });
  signal.throwIfAborted();
  // 1: there was a folder that it may not read. More: it did not run to its end.
  if (ended === 'exited' && exitCode <= 1 && !stdout.truncated) return stdout.text.split('\0').slice(0, -1);
  throw new OffsiteError('The files of a sandbox could not be listed.', {
    code: 'SANDBOX_UNWITNESSED',
    kind: 'infrastructure',
  });
}
