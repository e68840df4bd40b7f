import { PathRoom, tooManyPaths } from '../../base/path-room.ts';
import type { Container } from '../container.ts';
import { ownFolder } from '../own-files/volume.ts';
import type { FilesystemChange } from '../port/containers.ts';
import { changedSinceMade, type Kit } from './kit.ts';
import { furtherPaths } from './layer-paths.ts';

export interface ChangesRequest {
  /**
   * `every`: all changes, even disguised ones, or an error. `reported`: if the container's layer cannot be
   * read, the changes that the engine reports, which compares sizes and times; if there are very many, only
   * the first ones.
   */
  wanted: 'every' | 'reported';
  /** Only paths below this absolute folder. */
  below?: string;
  /** Absolute paths to leave out, with everything below them. */
  except?: readonly string[];
  /** Needed for `every` change if the container's layer cannot be read. */
  kit?: Kit | undefined;
  signal: AbortSignal;
}

export interface Changes {
  /**
   * Absolute and sorted. A folder is listed if it was itself changed, not for changes inside it. A deleted
   * folder is listed without its content.
   */
  paths: string[];
  /** Whether there were more. Never true for `every` change. */
  isCut: boolean;
}

/**
 * Engines write these files when they start a container, and mount most of them over the image's files;
 * Offsite writes some too.
 */
export const engineWrittenPaths: readonly string[] = [
  '/.dockerenv',
  '/etc/hostname',
  '/etc/hosts',
  '/etc/mtab',
  '/etc/resolv.conf',
  '/run/.containerenv',
  ownFolder,
];

/**
 * Lists what was created, changed or deleted in a container since it was created. Nothing may run in it, and
 * none of its programs is trusted. Costs one round trip for `reported`, and for `every` if this process can
 * read the container's layer. Otherwise it costs seven: a `find` that Offsite brings along lists what was
 * created or changed, by times that no process can set, and the engine reports what was deleted. Throws
 * `SANDBOX_UNWITNESSED` if there are too many changes.
 */
export async function changedPaths(container: Container, request: ChangesRequest): Promise<Changes> {
  const { wanted, below = '', kit, signal } = request;
  const except = [...(request.except ?? []), ...engineWrittenPaths];
  const isWanted = (path: string) =>
    path.startsWith(`${below}/`) && !except.some((one) => path === one || path.startsWith(`${one}/`));
  const layer = await container.layerPaths({ except, below, signal });
  if (layer) {
    const isCut = wanted === 'reported' && layer.at(-1) === furtherPaths;
    return { paths: layer.filter(isWanted).toSorted(), isCut };
  }
  const reported = await reportedChanges(container, isWanted);
  if (wanted === 'reported') return reported;
  if (reported.isCut) throw tooManyPaths();
  const byTimes = kit ? await changedSinceMade(container, kit, { except, signal }) : [];
  return { paths: [...new Set([...reported.paths, ...byTimes.filter(isWanted)])].toSorted(), isCut: false };
}

/**
 * Leaves out folders that the engine lists only because something below them changed. Some engines list the
 * folder of a file that they write, and not the file.
 */
async function reportedChanges(
  container: Pick<Container, 'changes'>,
  isWanted: (path: string) => boolean,
): Promise<Changes> {
  const room = new PathRoom();
  const changes: FilesystemChange[] = [];
  const parents = new Set(engineWrittenPaths.map(parentOf));
  let isCut = false;
  for await (const change of container.changes()) {
    const parent = parentOf(change.path);
    if (isWanted(parent)) parents.add(parent);
    if (!isWanted(change.path)) continue;
    isCut = !room.take(change.path);
    if (isCut) break;
    changes.push(change);
  }
  const own = changes.filter(({ path, kind }) => kind === 'deleted' || !parents.has(path));
  return { paths: own.map(({ path }) => path).sort(), isCut };
}

/** Empty for what is in the root. */
export const parentOf = (path: string) => path.slice(0, path.lastIndexOf('/'));

/** A path to read, with everything below it, to get the content of a change. */
export interface ChangedContent {
  path: string;
  /**
   * True for a new file, or a new folder with everything in it. Otherwise the path may be a folder that was
   * itself changed.
   */
  isAdded: boolean;
}

interface ContentsRequest {
  /** The most changed paths that the engine may list, and the most contents to return. */
  most: { changes: number; contents: number };
  signal: AbortSignal;
}

/**
 * What was created or changed in a container: files, and the topmost of the new folders. Undefined if there
 * are more than `most`. Nothing may run in the container. Two round trips.
 *
 * The engine's list shows which folders are new. It misses a file whose size and times were restored,
 * although an image of the container contains that file. The container's own layer shows it. Where this
 * process cannot read the layer, such a file is missed: finding it needs a program in the container, whose
 * files would be part of that image.
 */
export async function changedContents(
  container: Pick<Container, 'changes' | 'layerPaths'>,
  { most, signal }: ContentsRequest,
): Promise<ChangedContent[] | undefined> {
  const known = new Set<string>();
  const changes: ChangedContent[] = [];
  const added = new Set<string>();
  const parents = new Set<string>();
  for await (const { path, kind } of container.changes()) {
    known.add(path);
    if (kind === 'deleted') continue;
    if (changes.length >= most.changes) return undefined;
    const isAdded = kind === 'added';
    changes.push({ path, isAdded });
    if (isAdded) added.add(path);
    parents.add(parentOf(path));
  }
  const contents = changes.filter(({ path, isAdded }) => {
    return isAdded ? !added.has(parentOf(path)) : !parents.has(path);
  });
  const layer = (await container.layerPaths({ except: engineWrittenPaths, signal })) ?? [];
  if (layer.at(-1) === furtherPaths) return undefined;
  for (const path of layer)
    if (!known.has(path) && !isBelow(path, added)) contents.push({ path, isAdded: false });
  return contents.length > most.contents ? undefined : contents;
}

function isBelow(path: string, folders: ReadonlySet<string>): boolean {
  for (let parent = parentOf(path); parent !== ''; parent = parentOf(parent))
    if (folders.has(parent)) return true;
  return false;
}
