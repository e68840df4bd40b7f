import { workspaceFiles } from '../bounds/sandbox.ts';
import type { Artifact, TrajectoryEntry } from '../contract/report.ts';
import type { ArchivedEntry } from '../engine/archive/entries.ts';
import { PathRoom } from '../engine/changes/path-room.ts';
import type { Container } from '../engine/container.ts';
import type { BlobStore } from '../ledger/blobs.ts';
import { OffsiteError } from '../offsite-error.ts';
import { globMatcher } from './globs.ts';
import { sandboxPaths } from './sandbox-paths.ts';

/** Where the trajectory stands among the artifacts; no file of the workspace can take its place. */
const trajectoryPath = '.offsite/trajectory.jsonl';

/**
 * Keeps the workspace's files that match some globs as blobs. Links, devices and folders are not artifacts.
 */
export interface ArtifactCollection {
  readonly artifacts: readonly Artifact[];
  /** What matched and was left out; of very many, the first ones. */
  readonly omitted: readonly string[];
  /** Takes an entry of the workspace's archive, if it matches. */
  visit(entry: ArchivedEntry): Promise<void>;
  /** To be called after the last entry: a file's second name came without its content. */
  finish(deadline: AbortSignal): Promise<void>;
  /**
   * Reads the workspace for artifacts alone. Ends when `deadline` aborts, which a harness can bring about (a
   * sparse file of terabytes): what was read until then is kept.
   */
  readAll(deadline: AbortSignal): Promise<void>;
}

export function artifactCollection(
  container: Container,
  globs: readonly string[],
  blobs: BlobStore,
): ArtifactCollection {
  const matches = globMatcher(globs, false);
  const artifacts: Artifact[] = [];
  const omitted: string[] = [];
  const otherNames: string[] = [];
  let bytes = 0;
  const room = new PathRoom();

  function omit(path: string): void {
    if (room.take(path)) omitted.push(path);
  }

  async function take(path: string, entry: ArchivedEntry): Promise<void> {
    const isOver =
      artifacts.length >= workspaceFiles.count.artifacts ||
      bytes + entry.size > workspaceFiles.bytes.artifacts;
    if (isOver) {
      omit(path);
      return;
    }
    const { sha256, byteSize } = await blobs.put(entry.content());
    bytes += byteSize;
    artifacts.push({ path, byteSize, sha256 });
  }

  async function visit(entry: ArchivedEntry): Promise<void> {
    if (!matches(entry.path) || entry.path === trajectoryPath) return;
    if (entry.type === 'file') await take(entry.path, entry);
    if (entry.type === 'hardlink' && room.take(entry.path)) otherNames.push(entry.path);
  }

  async function finish(deadline: AbortSignal): Promise<void> {
    for (const path of otherNames.splice(0)) await takeOtherName(path, deadline);
  }

  async function takeOtherName(path: string, deadline: AbortSignal): Promise<void> {
    try {
      for await (const entry of container.archive(`${sandboxPaths.workspace}/${path}`, deadline)) {
        if (entry.type === 'file') await take(path, entry);
      }
    } catch (error) {
      // A name that is not UTF-8 cannot be asked for; its path here is how it is shown.
      if (!(error instanceof OffsiteError && error.code === 'ENGINE_NOT_FOUND')) throw error;
      omit(path);
    }
  }

  async function readAll(deadline: AbortSignal): Promise<void> {
    if (globs.length === 0) return;
    try {
      for await (const entry of container.archive(sandboxPaths.workspace, deadline)) await visit(entry);
      await finish(deadline);
    } catch (error) {
      if (!deadline.aborted) throw error;
      omitted.push('what was not read in time');
    }
  }

  return { artifacts, omitted, visit, finish, readAll };
}

/** The whole trajectory as an artifact, one entry a line. */
export async function trajectoryArtifact(
  trajectory: readonly TrajectoryEntry[],
  blobs: BlobStore,
): Promise<Artifact> {
  const lines = trajectory.map((entry) => `${JSON.stringify(entry)}\n`).join('');
  const { sha256, byteSize } = await blobs.put(Buffer.from(lines));
  return { path: trajectoryPath, byteSize, sha256 };
}
