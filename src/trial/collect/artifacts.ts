import { OffsiteError } from '../../base/offsite-error.ts';
import { PathRoom } from '../../base/path-room.ts';
import { workspaceFiles } from '../../bounds/sandbox.ts';
import type { Artifact, TrajectoryEntry } from '../../contract/report.ts';
import type { ArchivedEntry } from '../../engine/archive/entries.ts';
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
export class ArtifactCollection {
  readonly artifacts: Artifact[] = [];
  /** Paths that matched but were left out. If there are very many, only the first ones. */
  readonly omitted: string[] = [];
  readonly #container: Container;
  readonly #blobs: BlobStore;
  readonly #matches: ((path: string) => boolean) | undefined;
  readonly #otherNames: string[] = [];
  readonly #room = new PathRoom();
  #bytes = 0;

  constructor(
    container: Container,
    { artifacts: globs, artifactsExcept = [] }: Pick<TrialSpec, 'artifacts' | 'artifactsExcept'>,
    blobs: BlobStore,
  ) {
    this.#container = container;
    this.#blobs = blobs;
    const inside = `${container.workingDir}/`;
    const relative = (glob: string) => (glob.startsWith(inside) ? glob.slice(inside.length) : glob);
    const isNamed = globMatcher(globs.map(relative), false);
    const isExcept = globMatcher(artifactsExcept.map(relative), false);
    this.#matches = globs.length === 0 ? undefined : (path) => isNamed(path) && !isExcept(path);
  }

  /** Keeps an entry of the workspace's archive if it matches. */
  async visit(entry: ArchivedEntry): Promise<void> {
    const { path, type } = entry;
    if (!this.#matches?.(path) || ownPaths.has(path) || path.startsWith(serviceLogs)) return;
    if (type === 'file') await this.#take(path, entry);
    if (type === 'hardlink' && this.#room.take(path)) this.#otherNames.push(path);
  }

  /**
   * Call this after the last entry. It reads files that the archive listed as a second name, without content.
   */
  async finish(deadline: AbortSignal): Promise<void> {
    for (const path of this.#otherNames.splice(0)) {
      try {
        const place = `${this.#container.workingDir}/${path}`;
        for await (const entry of this.#container.archive(place, deadline))
          if (entry.type === 'file') await this.#take(path, entry);
      } catch (error) {
        // The engine cannot be asked for a name that is not UTF-8: `path` is only how that name is shown.
        if (!(error instanceof OffsiteError && error.code === 'ENGINE_NOT_FOUND')) throw error;
        this.#omit(path);
      }
    }
  }

  /**
   * Reads the workspace only for artifacts. Stops when `deadline` aborts, or before the file that would bring
   * the total size above `maxBytes` (a sparse file of terabytes, for example). It keeps what it read until
   * then.
   */
  async readAll(deadline: AbortSignal, maxBytes: number): Promise<void> {
    if (!this.#matches) return;
    const { workingDir } = this.#container;
    try {
      for await (const entry of this.#container.archive(workingDir, deadline, maxBytes))
        await this.visit(entry);
      await this.finish(deadline);
    } catch (error) {
      const isTooLarge = error instanceof OffsiteError && error.code === 'ENGINE_TOO_LARGE';
      if (!deadline.aborted && !isTooLarge) throw error;
      this.omitted.push(
        isTooLarge ? 'all files after one that is too large' : 'all files that were not read in time',
      );
    }
  }

  async #take(path: string, entry: ArchivedEntry): Promise<void> {
    const isOver =
      this.artifacts.length >= workspaceFiles.count.artifacts ||
      this.#bytes + entry.size > workspaceFiles.bytes.artifacts;
    if (isOver) return this.#omit(path);
    const { sha256, byteSize } = await this.#blobs.put(entry.content());
    this.#bytes += byteSize;
    this.artifacts.push({ path, byteSize, sha256 });
  }

  #omit(path: string): void {
    if (this.#room.take(path)) this.omitted.push(path);
  }
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
