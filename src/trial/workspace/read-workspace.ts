import { workspaceFiles } from '../../bounds/sandbox.ts';
import type { ArchiveCopy } from '../../engine/archive/archive-copy.ts';
import type { ArchivedEntry } from '../../engine/archive/entries.ts';
import { type Manifest, readManifest } from '../../engine/archive/stored-file.ts';
import { PathRoom } from '../../engine/changes/path-room.ts';
import type { Container } from '../../engine/container.ts';

/** A workspace's entries by relative path, or `large` if it is too large to read as a whole. */
export type WorkspaceState = Manifest | 'large';

class TooLarge extends Error {}

/**
 * Reads the state of a sandbox's workspace. `visit` may read the content of entries on the way. If the result
 * is `large`, discard what `visit` has read. Throws `ENGINE_NOT_FOUND` if there is no workspace.
 */
export async function readWorkspace(
  container: Container,
  signal: AbortSignal,
  visit?: (entry: ArchivedEntry) => Promise<void>,
  copy?: ArchiveCopy,
): Promise<WorkspaceState> {
  try {
    const entries = container.archive(container.workingDir, signal, undefined, copy);
    return await readManifest(withinLimits(entries), visit);
  } catch (error) {
    if (error instanceof TooLarge) return 'large';
    throw error;
  }
}

async function* withinLimits(archive: AsyncIterable<ArchivedEntry>): AsyncGenerator<ArchivedEntry> {
  let bytes = 0;
  let entries = 0;
  const room = new PathRoom();
  for await (const entry of archive) {
    bytes += entry.size;
    entries += 1;
    const hasRoom = room.take(entry.path) && room.take(entry.linkTarget ?? '');
    const isLarge = bytes > workspaceFiles.bytes.whole || entries > workspaceFiles.count.entries;
    if (isLarge || !hasRoom) throw new TooLarge();
    yield entry;
  }
}

/** The maximum bytes of a workspace that is read as a whole. */
export const smallWorkspace = workspaceFiles.bytes.whole;

/** The bytes of a block, which a file takes at least in part, and so does its place in its folder. */
const blockBytes = 4096;

/**
 * The bytes of the disk that all files in a workspace take without holes. Call this only before the harness
 * runs: it has no limit.
 */
export async function workspaceBytes(container: Container, signal: AbortSignal): Promise<number> {
  let bytes = 0;
  for await (const { size } of container.archive(container.workingDir, signal))
    bytes += (Math.ceil(size / blockBytes) + 1) * blockBytes;
  return bytes;
}
