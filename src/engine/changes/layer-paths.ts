import { opendir } from 'node:fs/promises';
import { PathRoom } from '../../base/path-room.ts';
import { pathLists } from '../../bounds/sandbox.ts';
import { nameText } from '../archive/entries.ts';
import { hostFactsOf, type RunningContainer } from '../container/running-container.ts';

export interface LayerRequest {
  /** Absolute paths to leave out, with everything below them. */
  except: readonly string[];
  /** Only paths below this absolute folder. Default: all. */
  below?: string | undefined;
  /** Whether to list no more than one path. */
  onlyFirst?: boolean;
  signal?: AbortSignal | undefined;
}

const lookMs = 10;

/** Stands for all paths beyond the listed ones; no real path looks like this. */
export const furtherPaths = '/… (and more paths than are listed)';

/**
 * Lists everything in the container's own layer: what was created, changed in any way, or deleted. A folder
 * is listed only if it is empty in the layer: it was created, was itself changed, or was deleted and created
 * again. A folder that cannot be read, or whose path is too long, counts as changed. All paths beyond a bound
 * are listed as one entry, {@link furtherPaths}. Reads the engine's disk directly. Undefined if this process
 * cannot read it: the engine is on another machine, this user may not read its folder, or it keeps no such
 * layers. Nothing may run in the container. One round trip the first time.
 */
export async function layerPaths(
  container: RunningContainer,
  { except, below = '', onlyFirst = false, signal }: LayerRequest,
): Promise<string[] | undefined> {
  const { layer } = await hostFactsOf(container, signal);
  if (layer === undefined) return undefined;
  const top: Folder = { onHost: Buffer.from(layer), path: '' };
  const paths: string[] = [];
  const room = new PathRoom();
  const left = new Set(except);
  const isOnTheWay = (path: string) =>
    `${path}/`.startsWith(`${below}/`) || `${below}/`.startsWith(`${path}/`);
  const waiting = [top];
  for (let folder = waiting.pop(); folder; folder = waiting.pop()) {
    if (onlyFirst && paths.length > 0) break;
    let isEmpty = true;
    try {
      // A folder may have millions of entries, so never hold them all in memory.
      for await (const entry of await opendir(folder.onHost, asBytes)) {
        isEmpty = false;
        const next = inside(folder, entry.name as unknown as Buffer);
        if (left.has(next.path) || !isOnTheWay(next.path)) continue;
        if (!room.take(next.path)) return [...paths, furtherPaths];
        // The layer records a deletion as a device, which processes in the sandbox cannot create.
        if (entry.isDirectory() && next.onHost.length < pathLists.bytes.path) waiting.push(next);
        else paths.push(next.path);
        if (onlyFirst && paths.length > 0) break;
      }
      signal?.throwIfAborted();
    } catch (error) {
      if (signal?.aborted || (error as NodeJS.ErrnoException).code === undefined) throw error;
      if (folder === top) return undefined;
      isEmpty = true;
    }
    if (isEmpty && folder.path === hostsFolder && (await isFilledSoon(container, folder, signal))) {
      waiting.push(folder);
      continue;
    }
    if (isEmpty && folder !== top) paths.push(folder.path);
  }
  return paths;
}

/** Init makes its file there around the answer to a start; just before, the folder is empty in the layer. */
const hostsFolder = '/etc';

/** Whether an empty folder gets an entry. It gets none if somebody emptied it. */
async function isFilledSoon(
  { port: { clock } }: RunningContainer,
  { onHost }: Folder,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const until = clock.now() + pathLists.time.hosts;
  while (clock.now() < until) {
    await clock.sleep(lookMs, signal);
    for await (const _entry of await opendir(onHost, asBytes)) return true;
  }
  return false;
}

interface Folder {
  /** Names are bytes, not always valid text. */
  onHost: Buffer;
  /** In the container, as text; empty for its root. */
  path: string;
}

/** With this, Node returns names as bytes, although its types say otherwise. */
const asBytes = { encoding: 'buffer' as BufferEncoding };

function inside({ onHost, path }: Folder, name: Buffer): Folder {
  return { onHost: Buffer.concat([onHost, Buffer.from('/'), name]), path: `${path}/${nameText(name)}` };
}
