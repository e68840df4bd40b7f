import type { Container } from '../container.ts';
import type { FilesystemChange } from '../port/containers.ts';
import { shieldFolder } from '../script/shield.ts';
import { changedSinceMade, type Kit } from './kit.ts';
import { PathRoom, tooManyPaths } from './path-room.ts';

export interface ChangesRequest {
  /** Absolute paths that are left out, with all below them. */
  except: readonly string[];
  /** Needed where the container's layer cannot be read. */
  kit: Kit | undefined;
  signal: AbortSignal;
}

/** An engine writes these itself when it starts a container, and mounts most of them over what the image has; so do we. */
const notTheWork = [
  '/.dockerenv',
  '/etc/hostname',
  '/etc/hosts',
  '/etc/mtab',
  '/etc/resolv.conf',
  shieldFolder,
];

/**
 * Every path of a container that was made, changed or deleted since it was created, sorted. Nothing may run in it,
 * and none of its programs is trusted. One round trip where this process can read the container's layer. Elsewhere
 * seven: a `find` that is brought along sees what was made or changed, by times that no process can set, and the
 * engine's own list of changes says what was deleted. Throws `SANDBOX_UNWITNESSED` where there are too many.
 */
export async function changedPaths(
  container: Container,
  { except: callers, kit, signal }: ChangesRequest,
): Promise<string[]> {
  const except = [...callers, ...notTheWork];
  const layer = await container.layerPaths({ except, signal });
  if (layer) return layer.toSorted();
  const isLeftOut = (path: string) => except.some((one) => path === one || path.startsWith(`${one}/`));
  const { changes, isCut } = await namedChanges(container, (path) => !isLeftOut(path));
  if (isCut) throw tooManyPaths();
  const byEngine = changes.map(({ path }) => path);
  const byTimes = kit ? await changedSinceMade(container, kit, { except, signal }) : [];
  return [...new Set([...byEngine, ...byTimes])].toSorted();
}

/**
 * The engine's own list of a container's changes, as far as there is room for it: of the paths that are `wanted`, without the folders that it
 * names only since they are on the way to a change.
 */
export async function namedChanges(
  container: Pick<Container, 'changes'>,
  wanted: (path: string) => boolean,
): Promise<{ changes: FilesystemChange[]; isCut: boolean }> {
  const room = new PathRoom();
  const changes: FilesystemChange[] = [];
  const parents = new Set<string>();
  let isCut = false;
  for await (const change of container.changes()) {
    if (!wanted(change.path)) continue;
    isCut = !room.take(change.path);
    if (isCut) break;
    changes.push(change);
    parents.add(change.path.slice(0, change.path.lastIndexOf('/')));
  }
  return { changes: changes.filter(({ path, kind }) => kind === 'deleted' || !parents.has(path)), isCut };
}
