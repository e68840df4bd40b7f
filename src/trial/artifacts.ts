import picomatch from 'picomatch';
import type { Artifact, TrajectoryEntry } from '../contract/report.ts';
import type { ArchivedEntry } from '../engine/archive/entries.ts';
import type { Container } from '../engine/container.ts';
import type { BlobStore } from '../ledger/blobs.ts';
import { places } from './places.ts';

/** Beyond these an artifact is left out, and said so. */
const limits = { count: 1000, bytes: 512 * 1024 ** 2 } as const;

/** Where the trajectory stands among the artifacts; no file of the workspace can take its place. */
const trajectoryPath = '.offsite/trajectory.jsonl';

export interface CollectedArtifacts {
  artifacts: Artifact[];
  /** Why some were left out. */
  omitted: string[];
}

/**
 * Keeps the workspace's files that match `globs` as blobs. Links, devices and folders are not artifacts. Reading the workspace ends
 * when `deadline` aborts, which a harness can bring about (a sparse file of terabytes): what was read until then is kept.
 */
export async function collectArtifacts(
  container: Container,
  globs: readonly string[],
  blobs: BlobStore,
  deadline: AbortSignal,
): Promise<CollectedArtifacts> {
  if (globs.length === 0) return { artifacts: [], omitted: [] };
  const matches = picomatch([...globs], { dot: true });
  const collection = new Collection(blobs);
  const otherNames: string[] = [];
  try {
    for await (const entry of container.archive(places.workspace, deadline)) {
      if (!matches(entry.path) || entry.path === trajectoryPath) continue;
      if (entry.type === 'file') await collection.take(entry.path, entry);
      // A file's second name comes without its content.
      if (entry.type === 'hardlink') otherNames.push(entry.path);
    }
    for (const path of otherNames) {
      for await (const entry of container.archive(`${places.workspace}/${path}`, deadline))
        if (entry.type === 'file') await collection.take(path, entry);
    }
  } catch (error) {
    if (!deadline.aborted) throw error;
    collection.omitted.push('what was not read in time');
  }
  return collection;
}

class Collection implements CollectedArtifacts {
  readonly artifacts: Artifact[] = [];
  readonly omitted: string[] = [];
  readonly #blobs: BlobStore;
  #bytes = 0;

  constructor(blobs: BlobStore) {
    this.#blobs = blobs;
  }

  async take(path: string, entry: ArchivedEntry): Promise<void> {
    if (this.artifacts.length >= limits.count || this.#bytes + entry.size > limits.bytes) {
      this.omitted.push(path);
      return;
    }
    const { sha256, byteSize } = await this.#blobs.put(entry.content());
    this.#bytes += byteSize;
    this.artifacts.push({ path, byteSize, sha256 });
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
