import { readdir } from 'node:fs/promises';
import { posix } from 'node:path';
import type { RunningContainer } from './running-container.ts';

/** Runtimes that let the kernel write into the layer; others, such as gVisor's, may keep what is written elsewhere. */
const plainRuntimes = ['runc', 'io.containerd.runc.v2', 'crun'];

interface Inspected {
  GraphDriver?: { Name: string; Data?: { UpperDir?: string } | null } | null;
  HostConfig?: { Runtime?: string };
}

export interface LayerRequest {
  /** Folders that are not looked into. */
  except: readonly string[];
  signal?: AbortSignal | undefined;
}

/**
 * All but folders that the container's own layer holds: what was made there, or changed in any way. Read from the engine's disk, past the
 * container and the engine; undefined where this process cannot: the engine is on another machine, or its folder is not ours to read, or
 * it keeps no such layers. What was deleted is left out. In the container nothing may run. One round trip.
 */
export async function layerPaths(
  { client, id }: RunningContainer,
  { except, signal }: LayerRequest,
): Promise<string[] | undefined> {
  const { GraphDriver, HostConfig } = await client.call(
    'asking where the layer of a container is',
    (abortSignal) =>
      client.dial<Inspected>({
        method: 'GET',
        path: `/containers/${id}/json?`,
        expected: [200],
        abortSignal,
      }),
    { signal },
  );
  const layer = GraphDriver?.Name === 'overlay2' ? GraphDriver.Data?.UpperDir : undefined;
  if (layer === undefined || !plainRuntimes.includes(HostConfig?.Runtime ?? '')) return undefined;
  const paths: string[] = [];
  try {
    await collect(layer, '/', new Set(except), paths);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'EACCES' || code === 'EPERM' || code === 'ENOTDIR') return undefined;
    throw error;
  }
  signal?.throwIfAborted();
  return paths;
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
