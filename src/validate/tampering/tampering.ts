import type { Container } from '../../engine/container.ts';
import { OffsiteError } from '../../offsite-error.ts';
import { type ChangeTimes, changeTimes, kitOf } from './changed-times.ts';
import { type ChangedFile, needsNames, suspects } from './suspects.ts';

export interface TamperingRequest {
  /** The sandbox in question, in which nothing runs. */
  container: Container;
  /** One of the same image in which nothing of the agent's ran. */
  fresh: Container;
  /** A folder below `/` that is in neither, of a name that nobody could foresee. */
  folder: string;
  /** Where the agent may write what it likes. */
  except: readonly string[];
  /** A file that was put into the image before anything ran in a sandbox of it. */
  old: string;
  signal: AbortSignal;
}

const loaderHook = '/etc/ld.so.preload';
const programFolders = ['/bin', '/sbin', '/lib', '/usr/bin', '/usr/sbin', '/usr/lib', '/usr/local'];
/** Far more than find and its libraries take. */
const kitBytes = 256 * 1024 ** 2;

/**
 * Which of the sandbox's programs, libraries and startup files were changed: what runs with them says what whoever changed them likes.
 * Told by the times of files' last change, which the kernel keeps and which no process can set, unlike those of their content, which
 * the engine's own list of changes goes by. In a sandbox without GNU find that list must do. Nine round trips.
 */
export async function tampering(request: TamperingRequest): Promise<string[]> {
  const { container, fresh, signal } = request;
  const [kit, hooked] = await Promise.all([kitOf(fresh, request), has(container, loaderHook, signal)]);
  // With it in place nothing can be run there that is to be believed.
  if (hooked && !(await has(fresh, loaderHook, signal))) return [loaderHook];
  if (!kit) return changedByEngine(container);
  await fresh.copyTo(container, kit.folder, { maxBytes: kitBytes, signal });
  return judged(fresh, differing(kit.times, await changeTimes(container, kit, request)), signal);
}

/**
 * What changed in one and not, or at another time, in the other. Files of the image have the same time in both; what each sandbox has
 * of its own making (the engine's files, and what prepare leaves where it runs for each trial) has its time in both as well, later
 * than the sandbox was made.
 */
function differing(were: ChangeTimes, are: ChangeTimes): string[] {
  const made = Number(were.get('/.dockerenv') ?? Number.POSITIVE_INFINITY);
  return [...are.keys()].filter((path) => {
    const was = were.get(path);
    return was === undefined || (was !== are.get(path) && Number(was) < made);
  });
}

async function judged(fresh: Container, paths: readonly string[], signal: AbortSignal): Promise<string[]> {
  const inImage = await existing(fresh, paths, signal);
  const changed = paths.map((path): ChangedFile => ({ path, inImage: inImage.has(path) }));
  return suspects(changed, needsNames(changed) ? await namesIn(fresh, signal) : new Set());
}

const sayExisting = 'for path; do if [ -e "$path" ] || [ -L "$path" ]; then printf "%s\\0" "$path"; fi; done';

/** Those of the paths that the fresh sandbox has too. */
async function existing(
  fresh: Container,
  paths: readonly string[],
  signal: AbortSignal,
): Promise<Set<string>> {
  if (paths.length === 0) return new Set();
  return listed(fresh, ['xargs', '-0', 'sh', '-c', sayExisting, 'sh'], signal, paths);
}

/** Names of the image's programs and libraries. */
function namesIn(fresh: Container, signal: AbortSignal): Promise<Set<string>> {
  return listed(fresh, ['find', ...programFolders, '!', '-type', 'd', '-printf', '%f\\0'], signal);
}

async function listed(
  fresh: Container,
  argv: string[],
  signal: AbortSignal,
  input: readonly string[] = [],
): Promise<Set<string>> {
  const { stdout } = await fresh.exec({
    argv,
    stdin: input.map((item) => `${item}\0`).join(''),
    capBytes: 64 * 1024 ** 2,
    timeoutMs: 60_000,
    signal,
  });
  signal.throwIfAborted();
  return new Set(stdout.text.split('\0'));
}

async function changedByEngine(container: Container): Promise<string[]> {
  const changes = await container.changes();
  // The engine names the folders on the way to a change as modified too.
  const ways = new Set(changes.map(({ path }) => path.slice(0, path.lastIndexOf('/'))));
  const files = changes
    .filter(({ path }) => !ways.has(path))
    .map(({ path, kind }) => ({ path, inImage: kind === 'modified' }));
  // Without a look at the image, every added program counts as one that stands in for another.
  return suspects(files, new Set(files.map(({ path }) => path.slice(path.lastIndexOf('/') + 1))));
}

async function has(container: Container, path: string, signal: AbortSignal): Promise<boolean> {
  try {
    for await (const _ of container.archive(path, signal)) break;
    return true;
  } catch (error) {
    if (error instanceof OffsiteError && error.code === 'ENGINE_NOT_FOUND') return false;
    throw error;
  }
}
