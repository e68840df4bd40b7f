import { readdir } from 'node:fs/promises';
import { posix } from 'node:path';
import { hostFactsOf } from './host-facts.ts';
import type { RunningContainer } from './running-container.ts';

export interface LayerRequest {
  /** Paths that are left out, folders with all in them. */
  except: readonly string[];
  signal?: AbortSignal | undefined;
}

/**
 * All but folders that the container's own layer holds: what was made there, or changed in any way. Read from the engine's disk, past the
 * container and the engine; undefined where this process cannot: the engine is on another machine, or its folder is not ours to read, or
 * it keeps no such layers. What was deleted is left out. In the container nothing may run. One round trip the first time.
 */
export async function layerPaths(
  container: RunningContainer,
  { except, signal }: LayerRequest,
): Promise<string[] | undefined> {
  const { layer } = await hostFactsOf(container, signal);
  if (layer === undefined) return undefined;
  const paths: string[] = [];
  try {
    await collect(layer, '/', new Set(except), paths);
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
    let entries = await readdir(layer, { withFileTypes: true });
    let folder = layer;
    for (const name of path.split('/').filter((part) => part !== '')) {
      const entry = entries.find((one) => one.name === name);
      if (!entry) return true;
      if (!entry.isDirectory()) return false;
      folder = posix.join(folder, name);
      entries = await readdir(folder, { withFileTypes: true });
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

async function collect(
  layer: string,
  folder: string,
  except: ReadonlySet<string>,
  paths: string[],
): Promise<void> {
  for (const entry of await readdir(posix.join(layer, folder), { withFileTypes: true })) {
    const path = posix.join(folder, entry.name);
    if (except.has(path)) continue;
    if (entry.isDirectory()) await collect(layer, path, except, paths);
    // A deletion is kept as a device; the sandbox's own processes cannot make any that work.
    else if (!entry.isCharacterDevice()) paths.push(path);
  }
}
