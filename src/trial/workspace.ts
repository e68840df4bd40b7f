import { workspaceFiles } from '../bounds/sandbox.ts';
import type { ArchivedEntry } from '../engine/archive/entries.ts';
import { type Manifest, readManifest } from '../engine/archive/manifest.ts';
import { PathRoom } from '../engine/changes/path-room.ts';
import type { Container } from '../engine/container.ts';
import { sandboxPaths } from './sandbox-paths.ts';

/** What is in a workspace, by relative path; or that it is too large to be read as a whole. */
export type WorkspaceState = Manifest | 'large';

class TooLarge extends Error {}

/**
 * Reads the state of a sandbox's workspace. `visit` may read the content of entries on the way; what it has
 * seen counts for nothing where the result is `large`. Throws `ENGINE_NOT_FOUND` where there is no workspace.
 */
export async function readWorkspace(
  container: Container,
  signal: AbortSignal,
  visit?: (entry: ArchivedEntry) => Promise<void>,
): Promise<WorkspaceState> {
  try {
    return await readManifest(withinLimits(container.archive(sandboxPaths.workspace, signal)), visit);
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

/** Bytes of a workspace that is read as a whole, at most. */
export const smallWorkspace = workspaceFiles.bytes.whole;

/**
 * Bytes of all files of a workspace, by their lengths: of those that prepare made, so that it need not be
 * bounded.
 */
export async function workspaceBytes(container: Container, signal: AbortSignal): Promise<number> {
  let bytes = 0;
  for await (const { size } of container.archive(sandboxPaths.workspace, signal)) bytes += size;
  return bytes;
}
