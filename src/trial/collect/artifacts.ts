import { OffsiteError } from '../../base/offsite-error.ts';
import { workspaceFiles } from '../../bounds/sandbox.ts';
import type { Artifact, TrajectoryEntry } from '../../contract/report.ts';
import type { ArchivedEntry } from '../../engine/archive/entries.ts';
import { PathRoom } from '../../engine/changes/layer-paths.ts';
import type { Container } from '../../engine/container.ts';
import type { BlobStore } from '../../ledger/blobs.ts';
import type { TrialSpec } from '../spec.ts';
import { globMatcher } from './read-workspace.ts';

/** The trajectory's path among the artifacts. No workspace file can use this path. */
export const trajectoryPath = '.offsite/trajectory.jsonl';

/**
 * The path of the record itself among the artifacts of a report, so that what was reported commits to all
 * that the record names. No workspace file can use this path.
 */
export const recordPath = '.offsite/record.json';

const ownPaths: ReadonlySet<string> = new Set([trajectoryPath, recordPath]);
const serviceLogs = '.offsite/services/';

/** The path of a service's log among the artifacts. No workspace file can use this path. */
export function serviceLogPath(service: string): string {
  return `${serviceLogs}${service}.log`;
}

/** Keeps workspace files that match the globs as blobs. Links, devices and folders are not artifacts. */
export interface ArtifactCollection {
  readonly artifacts: readonly Artifact[];
  /** Paths that matched but were left out. If there are very many, only the first ones. */
  readonly omitted: readonly string[];
  /** Keeps an entry of the workspace's archive if it matches. */
  visit(entry: ArchivedEntry): Promise<void>;
  /**
   * Call this after the last entry. It reads files that the archive listed as a second name, without content.
   */
  finish(deadline: AbortSignal): Promise<void>;
  /**
   * Reads the workspace only for artifacts. Stops when `deadline` aborts, or before the file that would bring
   * the total size above `maxBytes` (a sparse file of terabytes, for example). It keeps what it read until
   * then.
   */
  readAll(deadline: AbortSignal, maxBytes: number): Promise<void>;
}

export function artifactCollection(
  container: Container,
  { artifacts: globs, artifactsExcept = [] }: Pick<TrialSpec, 'artifacts' | 'artifactsExcept'>,
  blobs: BlobStore,
): ArtifactCollection {
  const inside = `${container.workingDir}/`;
  const relative = (glob: string) => (glob.startsWith(inside) ? glob.slice(inside.length) : glob);
  const isNamed = globMatcher(globs.map(relative), false);
  const isExcept = globMatcher(artifactsExcept.map(relative), false);
  const matches = (path: string) => isNamed(path) && !isExcept(path);
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
    if (!matches(entry.path) || ownPaths.has(entry.path) || entry.path.startsWith(serviceLogs)) return;
    if (entry.type === 'file') await take(entry.path, entry);
    if (entry.type === 'hardlink' && room.take(entry.path)) otherNames.push(entry.path);
  }

  async function finish(deadline: AbortSignal): Promise<void> {
    for (const path of otherNames.splice(0)) await takeOtherName(path, deadline);
  }

  async function takeOtherName(path: string, deadline: AbortSignal): Promise<void> {
    try {
      for await (const entry of container.archive(`${container.workingDir}/${path}`, deadline)) {
        if (entry.type === 'file') await take(path, entry);
      }
    } catch (error) {
      // The engine cannot be asked for a name that is not UTF-8: `path` is only how that name is shown.
      if (!(error instanceof OffsiteError && error.code === 'ENGINE_NOT_FOUND')) throw error;
      omit(path);
    }
  }

  async function readAll(deadline: AbortSignal, maxBytes: number): Promise<void> {
    if (globs.length === 0) return;
    try {
      for await (const entry of container.archive(container.workingDir, deadline, maxBytes))
        await visit(entry);
      await finish(deadline);
    } catch (error) {
      const isTooLarge = error instanceof OffsiteError && error.code === 'ENGINE_TOO_LARGE';
      if (!deadline.aborted && !isTooLarge) throw error;
      omitted.push(
        isTooLarge ? 'all files after one that is too large' : 'all files that were not read in time',
      );
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
