import type { Dirent } from 'node:fs';
import { opendir } from 'node:fs/promises';
import { posix } from 'node:path';
import { pathLists } from '../../bounds/sandbox.ts';
import { nameText } from '../archive/names.ts';
import { hostFactsOf } from '../container/host-facts.ts';
import type { RunningContainer } from '../container/running-container.ts';
import { PathRoom } from './path-room.ts';

export interface LayerRequest {
  /** Absolute paths that are left out, with all below them. */
  except: readonly string[];
  signal?: AbortSignal | undefined;
}

/** Stands for the paths beyond those that are listed; no path is like it. */
const furtherPaths = '/… (and more paths than are listed)';

/**
 * Everything that the container's own layer holds: what was made there, changed in any way, or deleted.
 * Folders appear only where they are empty in the layer: made, changed themselves, or emptied by being made
 * anew. A folder that cannot be read, or whose path is too long, counts as changed itself; so do, as {@link
 * furtherPaths}, all beyond a bound. Read from the engine's disk, past the container and the engine;
 * undefined where this process cannot read that: the engine is on another machine, its folder is not ours to
 * read, or it keeps no such layers. Nothing may run in the container. One round trip the first time.
 */
export async function layerPaths(
  container: RunningContainer,
  { except, signal }: LayerRequest,
): Promise<string[] | undefined> {
  const { layer } = await hostFactsOf(container, signal);
  if (layer === undefined) return undefined;
  const top: Folder = { onHost: Buffer.from(layer), path: '' };
  const paths: string[] = [];
  const room = new PathRoom();
  const left = new Set(except);
  const waiting = [top];
  for (let folder = waiting.pop(); folder; folder = waiting.pop()) {
    let isEmpty = true;
    try {
      // A folder may have millions of entries, which are never held together.
      for await (const entry of await opendir(folder.onHost, asBytes)) {
        isEmpty = false;
        const next = inside(folder, entry.name as unknown as Buffer);
        if (left.has(next.path)) continue;
        if (!room.take(next.path)) return [...paths, furtherPaths];
        // A deletion is kept as a device, which the sandbox's own processes cannot make.
        if (entry.isDirectory() && next.onHost.length < pathLists.bytes.path) waiting.push(next);
        else paths.push(next.path);
      }
      signal?.throwIfAborted();
    } catch (error) {
      if (signal?.aborted || (error as NodeJS.ErrnoException).code === undefined) throw error;
      if (folder === top) return undefined;
      isEmpty = true;
    }
    if (isEmpty && folder !== top) paths.push(folder.path);
  }
  return paths;
}

interface Folder {
  /** Names are bytes, which need be no text. */
  onHost: Buffer;
  /** In the container, as text; empty for its root. */
  path: string;
}

/** Node gives names as bytes then, whatever its types say. */
const asBytes = { encoding: 'buffer' as BufferEncoding };

function inside({ onHost, path }: Folder, name: Buffer): Folder {
  return { onHost: Buffer.concat([onHost, Buffer.from('/'), name]), path: `${path}/${nameText(name)}` };
}

/**
 * Whether the container's own layer holds nothing at a path, not even a deletion; undefined where this
 * process cannot read it. In the container nothing may run.
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
