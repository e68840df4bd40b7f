import type { Container } from '../container.ts';
import type { FilesystemChange } from '../port/containers.ts';
import { shieldFolder } from '../script/shield.ts';
import { changedSinceMade, type Kit } from './kit.ts';
import { PathRoom, tooManyPaths } from './path-room.ts';

export interface ChangesRequest {
  /**
   * `every`: all changes, however they were disguised, or an error. `reported`: those that the engine
   * reports, which goes by sizes and times; of very many the first ones.
   */
  wanted: 'every' | 'reported';
  /** Only paths below this absolute folder. */
  below?: string;
  /** Absolute paths that are left out, with all below them. */
  except?: readonly string[];
  /** Where the container's layer cannot be read, `every` change takes this. */
  kit?: Kit | undefined;
  signal: AbortSignal;
}

export interface Changes {
  /**
   * Absolute and sorted. A folder is there for itself, not for what changed in it; one that went, without its
   * content.
   */
  paths: string[];
  /** There were more. Never so of `every` change. */
  isCut: boolean;
}

/**
 * An engine writes these itself when it starts a container, and mounts most of them over what the image has;
 * so do we.
 */
const notTheWork = [
  '/.dockerenv',
  '/etc/hostname',
  '/etc/hosts',
  '/etc/mtab',
  '/etc/resolv.conf',
  shieldFolder,
];

/**
 * What was made, changed or deleted in a container since it was created. Nothing may run in it, and none of
 * its programs is trusted. One round trip for what the engine reports, and for `every` change where this
 * process can read the container's layer. Elsewhere seven: a `find` that is brought along sees what was made
 * or changed, by times that no process can set, and the engine reports what was deleted. Throws
 * `SANDBOX_UNWITNESSED` where there are too many.
 */
export async function changedPaths(container: Container, request: ChangesRequest): Promise<Changes> {
  const { wanted, below = '', kit, signal } = request;
  const except = [...(request.except ?? []), ...notTheWork];
  const isWanted = (path: string) =>
    path.startsWith(`${below}/`) && !except.some((one) => path === one || path.startsWith(`${one}/`));
  if (wanted === 'reported') return await reportedChanges(container, isWanted);
  const layer = await container.layerPaths({ except, signal });
  if (layer) return { paths: layer.filter(isWanted).toSorted(), isCut: false };
  const reported = await reportedChanges(container, isWanted);
  if (reported.isCut) throw tooManyPaths();
  const byTimes = kit ? await changedSinceMade(container, kit, { except, signal }) : [];
  return { paths: [...new Set([...reported.paths, ...byTimes.filter(isWanted)])].toSorted(), isCut: false };
}

/** Without the folders that the engine names only because they are on the way to a change. */
async function reportedChanges(
  container: Pick<Container, 'changes'>,
  isWanted: (path: string) => boolean,
): Promise<Changes> {
  const room = new PathRoom();
  const changes: FilesystemChange[] = [];
  const parents = new Set<string>();
  let isCut = false;
  for await (const change of container.changes()) {
    if (!isWanted(change.path)) continue;
    isCut = !room.take(change.path);
    if (isCut) break;
    changes.push(change);
    parents.add(change.path.slice(0, change.path.lastIndexOf('/')));
  }
  const own = changes.filter(({ path, kind }) => kind === 'deleted' || !parents.has(path));
  return { paths: own.map(({ path }) => path).sort(), isCut };
}
