import type { Container } from '../container.ts';
import { engineWrittenPaths, parentOf } from './changed-paths.ts';
import { furtherPaths } from './layer-paths.ts';

/** A path to read, with everything below it, to get the content of a change. */
export interface ChangedContent {
  path: string;
  /**
   * True for a new file, or a new folder with everything in it. Otherwise the path may be a folder that was
   * itself changed.
   */
  isAdded: boolean;
}

export interface ContentsRequest {
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
