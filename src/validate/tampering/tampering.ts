import type { Container } from '../../engine/container.ts';
import { changedSinceMade, type Kit } from './kit.ts';
import { type ChangedFile, isOfInterest, needsNames, suspects } from './suspects.ts';

export interface TamperingRequest {
  /** The sandbox in question, in which nothing runs. */
  container: Container;
  /** Needed where the sandbox's layer cannot be read. Where there is none, or times say nothing, the engine's own list of changes must do. */
  kit: Kit | undefined;
  /** Another of the same image in which nothing of the agent's ran; asked for only where something was changed. */
  fresh: () => Promise<Container>;
  /** Where the agent may write what it likes. */
  except: readonly string[];
  signal: AbortSignal;
}

const loaderHook = '/etc/ld.so.preload';
const programFolders = ['/bin', '/sbin', '/lib', '/usr/bin', '/usr/sbin', '/usr/lib', '/usr/local'];

/**
 * Which of the sandbox's programs, libraries and startup files were changed since it was made: what runs with them says what whoever
 * changed them likes. Two round trips where nothing was, and seven where it takes the kit.
 */
export async function tampering(request: TamperingRequest): Promise<string[]> {
  const { container, kit, fresh, signal } = request;
  // With it in place nothing can be run there that is to be believed.
  if ((await container.kindOf(loaderHook, signal)) !== 'nothing') {
    return [...new Set([loaderHook, ...(await changedByEngine(container))])];
  }
  const paths =
    (await container.layerPaths(request)) ?? (kit && (await changedSinceMade(container, kit, request)));
  if (!paths) return changedByEngine(container);
  const changed = paths.filter(isOfInterest);
  return changed.length === 0 ? [] : judged(await fresh(), changed, signal);
}

async function judged(fresh: Container, paths: readonly string[], signal: AbortSignal): Promise<string[]> {
  const inImage = await existing(fresh, paths, signal);
  const changed = paths.map((path): ChangedFile => ({ path, inImage: inImage.has(path) }));
  return suspects(changed, needsNames(changed) ? await namesIn(fresh, signal) : new Set());
}

const sayExisting = 'for path; do if [ -e "$path" ] || [ -L "$path" ]; then printf "%s\\0" "$path"; fi; done';

/** Those of the paths that the fresh sandbox has too. */
function existing(fresh: Container, paths: readonly string[], signal: AbortSignal): Promise<Set<string>> {
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
