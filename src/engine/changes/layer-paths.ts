import type { Dirent } from 'node:fs';
import { opendir } from 'node:fs/promises';
import { posix } from 'node:path';
import { hostFactsOf } from '../container/host-facts.ts';
import type { RunningContainer } from '../container/running-container.ts';
import { PathRoom, tooManyPaths } from './path-room.ts';

export interface LayerRequest {
  /** Absolute paths that are left out, with all below them. */
  except: readonly string[];
  signal?: AbortSignal | undefined;
}

/**
 * Everything that the container's own layer holds: what was made there, changed in any way, or deleted. Folders
 * appear only where they are empty in the layer: made, changed themselves, or emptied by being made anew. Read from
 * the engine's disk, past the container and the engine; undefined where this process cannot: the engine is on
 * another machine, its folder is not ours to read, or it keeps no such layers. Nothing may run in the container.
 * One round trip the first time. Throws `SANDBOX_UNWITNESSED` where there are too many.
 */
export async function layerPaths(
  container: RunningContainer,
  { except, signal }: LayerRequest,
): Promise<string[] | undefined> {
  const { layer } = await hostFactsOf(container, signal);
  if (layer === undefined) return undefined;
  const paths: string[] = [];
  try {
    await collect({ layer, except: new Set(except), paths, room: new PathRoom() }, '/');
  } catch (error) {
    if (isUnreadable(error)) return undefined;
    throw error;
  }
  signal?.throwIfAborted();
  return paths;
}

/**
 * Whether the container's own layer holds nothing at a path, not even a deletion; undefined where this process cannot read it. In the
 * container nothing may run.
 */
export async function isUntouched(
  container: RunningContainer,
  path: string,
  signal?: AbortSignal,
): Promise<boolean | undefined> {
  const { layer } = await hostFactsOf(container, signal);
  if (layer === undefined) return undefined;
  try {
    // The first folder that is not there proves that the layer itself was read.
    let folder = layer;
    for (const name of path.split('/').filter((part) => part !== '')) {
      const entry = await entryOf(folder, name);
      if (!entry) return true;
      if (!entry.isDirectory()) return false;
      folder = posix.join(folder, name);
    }
    return false;
  } catch (error) {
    if (isUnreadable(error)) return undefined;
    throw error;
  }
}

function isUnreadable(error: unknown): boolean {
  const { code = '' } = error as NodeJS.ErrnoException;
  return ['ENOENT', 'EACCES', 'EPERM', 'ENOTDIR'].includes(code);
}

/** A folder may have millions of entries, which are never held together. */
async function entryOf(folder: string, name: string): Promise<Dirent | undefined> {
  for await (const entry of await opendir(folder)) if (entry.name === name) return entry;
  return undefined;
}

interface Collection {
  layer: string;
  except: ReadonlySet<string>;
  paths: string[];
  room: PathRoom;
}

async function collect(into: Collection, folder: string): Promise<void> {
  const add = (path: string) => {
    if (!into.room.take(path)) throw tooManyPaths();
    into.paths.push(path);
  };
  let isEmpty = true;
  for await (const entry of await opendir(posix.join(into.layer, folder))) {
    isEmpty = false;
    const path = posix.join(folder, entry.name);
    if (into.except.has(path)) continue;
    if (entry.isDirectory()) await collect(into, path);
    // A deletion too: it is kept as a device, and the sandbox's own processes cannot make devices.
    else add(path);
  }
  if (isEmpty && folder !== '/') add(folder);
}
