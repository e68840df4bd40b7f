import pLimit from 'p-limit';
import {
  createdLabel,
  descriptionLabel,
  parentLabel,
  roleLabel,
  volumeBytesLabel,
  volumeLabel,
} from '../labels.ts';
import type { EnginePort } from '../port/engine-port.ts';
import type { ListedImage } from '../port/images.ts';

/** A snapshot that an engine keeps. */
export interface KeptSnapshot {
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
  /** Epoch milliseconds, up to an hour before the last use. */
  usedAt: number;
  parentId: string;
  /** Images without a name between it and its parent, nearest first: a builder's own steps. */
  stepIds: string[];
  /** Whether a container uses it. */
  inUse: boolean;
}

/** Concurrent requests. */
const atOnce = 4;

/**
 * All snapshots named `repository`. Two round trips, and one for each snapshot: an engine reports the time of
 * a name only when it inspects an image.
 */
export async function keptSnapshots(
  port: EnginePort,
  repository: string,
  signal?: AbortSignal,
): Promise<KeptSnapshot[]> {
  const [images, containers] = await Promise.all([
    port.images.list(signal),
    port.list('container', [], signal),
  ]);
  const byId = new Map(images.map((image) => [image.id, image]));
  const inUse = new Set(containers.map(({ imageId }) => imageId));
  const limit = pLimit(atOnce);
  const described = images.map(({ id, ...image }) =>
    limit(async (): Promise<KeptSnapshot | undefined> => {
      const name = image.names.find((one) => one.startsWith(`${repository}:`));
      if (name === undefined || image.labels[roleLabel] !== 'snapshot') return undefined;
      const found = await port.images.find(id, signal);
      if (found === undefined) return undefined;
      // Some engines do not know parents, and others name a step of a builder.
      const parentId = found.labels[parentLabel] ?? image.parentId;
      const volume = found.labels[volumeLabel];
      return {
        id,
        name,
        description: found.labels[descriptionLabel] ?? '',
        bytes:
          Math.max(0, image.bytes - (byId.get(parentId)?.bytes ?? 0)) +
          Number(found.labels[volumeBytesLabel] ?? 0),
        ...(volume !== undefined && { volume }),
        createdAt: Number(found.labels[createdLabel] ?? image.createdAt),
        usedAt: found.namedAt,
        parentId,
        stepIds: stepsBetween(id, parentId, byId),
        inUse: inUse.has(id),
      };
    }),
  );
  return (await Promise.all(described)).filter((snapshot) => snapshot !== undefined);
}

function stepsBetween(id: string, parentId: string, images: ReadonlyMap<string, ListedImage>): string[] {
  const steps: string[] = [];
  for (let step = images.get(images.get(id)?.parentId ?? ''); step; step = images.get(step.parentId)) {
    if (step.id === parentId || step.names.length > 0) break;
    steps.push(step.id);
  }
  return steps;
}
