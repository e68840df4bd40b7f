import { readFileSync } from 'node:fs';
import type { Container } from '../../engine/container.ts';
import type { ExecResult } from '../../engine/exec/exec-request.ts';
import { OffsiteError } from '../../offsite-error.ts';

const makeKit = readFileSync(new URL('./kit.sh', import.meta.url), 'utf8');

/** Bytes of a listing; some hundred thousand files. */
const listingBytes = 64 * 1024 ** 2;
const listingMs = 120_000;

/** When files were changed last, in seconds, by path. */
export type ChangeTimes = ReadonlyMap<string, string>;

/** A program that lists files by when they were last changed, taken from a sandbox in which no harness ran. */
export interface Kit {
  /** Absolute folder in both sandboxes. */
  folder: string;
  loader: string;
  /** What was changed before this, in seconds, is not listed. */
  since: string;
  /** What it says of the sandbox it comes from. */
  times: ChangeTimes;
}

interface KitRequest {
  /** For the kit; below `/`, and not there yet. */
  folder: string;
  /** A file that was put into the image before anything ran in a sandbox of it. */
  old: string;
  /** Folders that are not listed. */
  except: readonly string[];
  signal: AbortSignal;
}

/** Makes the kit in `fresh`; undefined where that has no GNU find. */
export async function kitOf(
  fresh: Container,
  { folder, old, except, signal }: KitRequest,
): Promise<Kit | undefined> {
  const result = await fresh.exec({
    argv: ['/bin/sh', '-c', makeKit, 'kit', folder, old, ...except],
    cwd: '/',
    env: { LC_ALL: 'C' },
    capBytes: listingBytes,
    timeoutMs: listingMs,
    signal,
  });
  signal.throwIfAborted();
  const [loader = '', since = '', ...entries] = whole(result);
  if (!/^ld-[^/]+$/.test(loader) || !/^[\d.]+$/.test(since)) return undefined;
  return { folder, loader, since, times: timesOf(entries) };
}

/** The same of another sandbox, in which the kit's folder lies as well. */
export async function changeTimes(
  container: Container,
  { folder, loader, since }: Kit,
  { except, signal }: Pick<KitRequest, 'except' | 'signal'>,
): Promise<ChangeTimes> {
  const result = await container.exec({
    // Neither the system's loader nor its libraries have a part in this.
    argv: [
      ...[`${folder}/${loader}`, '--library-path', folder, `${folder}/find`, '/', '-xdev'],
      ...['(', ...except.flatMap((path) => ['-path', path, '-o']), '-path', folder, ')', '-prune', '-o'],
      ...['-newerct', `@${since}`, '!', '-type', 'd', '-printf', '%C@ %p\\0'],
    ],
    env: { LC_ALL: 'C' },
    cwd: '/',
    capBytes: listingBytes,
    timeoutMs: listingMs,
    signal,
  });
  signal.throwIfAborted();
  return timesOf(whole(result));
}

/** The parts of a listing that is complete. */
function whole({ ended, stdout }: ExecResult): string[] {
  if (ended === 'exited' && !stdout.truncated) return stdout.text.split('\0').slice(0, -1);
  throw new OffsiteError('The files of a sandbox could not be listed.', {
    code: 'SANDBOX_UNWITNESSED',
    kind: 'infrastructure',
  });
}

function timesOf(entries: readonly string[]): ChangeTimes {
  return new Map(
    entries.map((entry) => {
      const space = entry.indexOf(' ');
      return [entry.slice(space + 1), entry.slice(0, space)];
    }),
  );
}
