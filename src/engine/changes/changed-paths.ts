import type { Container } from '../container.ts';
import { shieldFolder } from '../script/shield.ts';
import { changedSinceMade, type Kit } from './kit.ts';

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
 * engine's own list of changes says what was deleted.
 */
export async function changedPaths(
  container: Container,
  { except: callers, kit, signal }: ChangesRequest,
): Promise<string[]> {
  const except = [...callers, ...notTheWork];
  const layer = await container.layerPaths({ except, signal });
  if (layer) return layer.toSorted();
  const changes = await container.changes();
  const parents = new Set(changes.map(({ path }) => path.slice(0, path.lastIndexOf('/'))));
  // The engine names every folder on the way to a change as modified too.
  const named = changes.filter(({ path, kind }) => kind === 'deleted' || !parents.has(path));
  const isLeftOut = (path: string) => except.some((one) => path === one || path.startsWith(`${one}/`));
  const byEngine = named.map(({ path }) => path).filter((path) => !isLeftOut(path));
  const byTimes = kit ? await changedSinceMade(container, kit, { except, signal }) : [];
  return [...new Set([...byEngine, ...byTimes])].toSorted();
}
