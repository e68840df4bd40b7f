import type { Dirent } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { posix } from 'node:path';
import { pathLists } from '../../bounds/sandbox.ts';
import { nameText } from '../archive/names.ts';
import { hostFactsOf } from '../container/host-facts.ts';
import type { RunningContainer } from '../container/running-container.ts';

export interface LayerRequest {
  /** Absolute paths that are left out, with all below them. */
  except: readonly string[];
  signal?: AbortSignal | undefined;
}

/** Stands for the paths beyond those that are listed; no path is like it. */
const furtherPaths = '/… (and more paths than are listed)';

/**
 * Everything that the container's own layer holds: what was made there, changed in any way, or deleted. Folders
 * appear only where they are empty in the layer: made, changed themselves, or emptied by being made anew. A folder that
 * cannot be read, or whose path is too long, counts as changed itself; so do, as {@link furtherPaths}, all beyond a
 * bound. Read from the engine's disk, past the container and the engine; undefined where this process cannot read
 * that: the engine is on another machine, its folder is not ours to read, or it keeps no such layers. Nothing may
 * run in the container. One round trip the first time.
 */
export async function layerPaths(
  container: RunningContainer,
  { except, signal }: LayerRequest,
): Promise<string[] | undefined> {
  const { layer } = await hostFactsOf(container, signal);
  if (layer === undefined) return undefined;
  const top: Folder = { onHost: Buffer.from(layer), path: '' };
  const entries = await entriesOf(top);
  return entries && collect(top, entries, new Set(except), signal);
}

interface Folder {
  /** Names are bytes, which need be no text. */
  onHost: Buffer;
  /** In the container, as text; empty for its root. */
  path: string;
}

async function collect(
  top: Folder,
  first: Dirent<Buffer>[],
  except: ReadonlySet<string>,
  signal: AbortSignal | undefined,
): Promise<string[]> {
  const paths: string[] = [];
  let characters = 0;
  const waiting = [{ folder: top, entries: first }];
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    signal?.throwIfAborted();
    for (const entry of next.entries) {
      const { onHost, path } = inside(next.folder, entry.name);
      if (except.has(path)) continue;
      // A deletion is kept as a device, which the sandbox's own processes cannot make.
      const entries =
        entry.isDirectory() && onHost.length < pathLists.bytes.path ? await entriesOf({ onHost, path }) : [];
      if (entries && entries.length > 0) {
        waiting.push({ folder: { onHost, path }, entries });
        continue;
      }
      characters += path.length;
      if (paths.length >= pathLists.count.layer || characters > pathLists.bytes.layer) {
        return [...paths, furtherPaths];
      }
      paths.push(path);
    }
  }
  return paths;
}

function inside({ onHost, path }: Folder, name: Buffer): Folder {
  return { onHost: Buffer.concat([onHost, Buffer.from('/'), name]), path: `${path}/${nameText(name)}` };
}

/** Undefined where the folder cannot be read. */
async function entriesOf({ onHost }: Folder): Promise<Dirent<Buffer>[] | undefined> {
  try {
    return await readdir(onHost, { withFileTypes: true, encoding: 'buffer' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === undefined) throw error;
    return undefined;
  }
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
