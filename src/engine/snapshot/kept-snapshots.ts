import pLimit from 'p-limit';
import {
  createdLabel,
  descriptionLabel,
  parentLabel,
  roleLabel,
  volumeBytesLabel,
  volumeLabel,
} from '../owned-objects.ts';
import type { EnginePort } from '../port/engine-port.ts';
import type { ListedImage } from '../port/images.ts';

/** The name of the images of all snapshots, without a tag. */
export const snapshotRepository = 'offsite/snapshot';

/** A snapshot that an engine lists. */
export interface ListedSnapshot {
  id: string;
  /** `offsite/snapshot:` and a hash. */
  name: string;
  /** The description from its request. */
  description: string;
  /** The volume that it stands for. */
  volume?: string;
  /** Bytes that its removal frees: those that it adds to its parent, and those of its volume. */
  bytes: number;
  /** Epoch milliseconds. */
  createdAt: number;
  parentId: string;
  /** Images without a name between it and its parent, nearest first: a builder's own steps. */
  stepIds: string[];
  /** Whether a container uses it. */
  inUse: boolean;
}

/** A snapshot that an engine keeps, with its last use. */
export interface KeptSnapshot extends ListedSnapshot {
  /** Epoch milliseconds, up to an hour before the last use. */
  usedAt: number;
}

/** Concurrent requests. */
const atOnce = 4;

/** All snapshots named `repository`. Two round trips. */
export async function listedSnapshots(
  port: EnginePort,
  repository: string,
  signal?: AbortSignal,
): Promise<ListedSnapshot[]> {
  const [images, containers] = await Promise.all([
    port.images.list(signal),
    port.list('container', [], signal),
  ]);
  const byId = new Map(images.map((image) => [image.id, image]));
  const inUse = new Set(containers.map(({ imageId }) => imageId));
  return images.flatMap(({ id, labels, ...image }) => {
    const name = image.names.find((one) => one.startsWith(`${repository}:`));
    if (name === undefined || labels[roleLabel] !== 'snapshot') return [];
    // Some engines do not know parents, and others name a step of a builder.
    const parentId = labels[parentLabel] ?? image.parentId;
    const volume = labels[volumeLabel];
    return {
      id,
      name,
      description: labels[descriptionLabel] ?? '',
      bytes:
        Math.max(0, image.bytes - (byId.get(parentId)?.bytes ?? 0)) + Number(labels[volumeBytesLabel] ?? 0),
      ...(volume !== undefined && { volume }),
      createdAt: Number(labels[createdLabel] ?? image.createdAt),
      parentId,
      stepIds: stepsBetween(id, parentId, byId),
      inUse: inUse.has(id),
    };
  });
}

/** With the last use of each: one round trip for each, because an engine reports it only of one image. */
export async function withLastUse(
  port: EnginePort,
  snapshots: readonly ListedSnapshot[],
  signal?: AbortSignal,
): Promise<KeptSnapshot[]> {
  const limit = pLimit(atOnce);
  const used = snapshots.map((snapshot) =>
    limit(async (): Promise<KeptSnapshot[]> => {
      const image = await port.images.find(snapshot.id, signal);
      return image === undefined ? [] : [{ ...snapshot, usedAt: image.namedAt }];
    }),
  );
  return (await Promise.all(used)).flat();
}

/** All snapshots named `repository`, with the last use of each. */
export async function keptSnapshots(
  port: EnginePort,
  repository: string,
  signal?: AbortSignal,
): Promise<KeptSnapshot[]> {
  return await withLastUse(port, await listedSnapshots(port, repository, signal), signal);
}

function stepsBetween(id: string, parentId: string, images: ReadonlyMap<string, ListedImage>): string[] {
  const steps: string[] = [];
  for (let step = images.get(images.get(id)?.parentId ?? ''); step; step = images.get(step.parentId)) {
    if (step.id === parentId || step.names.length > 0) break;
    steps.push(step.id);
  }
  return steps;
}
