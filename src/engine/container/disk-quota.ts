import { diskMeasure } from '../../bounds/sandbox.ts';
import type { Capabilities } from '../port/capabilities.ts';
import type { ContainerRequest } from '../port/containers.ts';
import type { EnginePort } from '../port/engine-port.ts';
import { isEngineFailure } from '../port/failure.ts';

/** A new container, and whether the engine's storage itself limits what it takes. */
export interface CreatedWithin {
  id: string;
  warnings: string[];
  hasQuota: boolean;
}

/** Creates a container. Undefined `diskBytes`: without a quota. */
export type CreateWithin = (
  request: ContainerRequest,
  diskBytes: number | undefined,
  signal?: AbortSignal,
) => Promise<CreatedWithin>;

/** Storage whose quotas also count what a container has from its image. */
const countsImage = ['btrfs', 'zfs', 'devicemapper'];

/**
 * Creates containers with a quota of the engine's storage, a little above their disk limit, where it has
 * quotas: xfs with project quotas, btrfs, zfs. Which storage has them only shows when the engine refuses the
 * first container that asks for one; from then on, none asks.
 */
export function createWithin(
  port: EnginePort,
  { storageDriver, imageStore }: Pick<Capabilities, 'storageDriver' | 'imageStore'>,
): CreateWithin {
  // With containerd's store, an engine takes the option and does nothing.
  let isRefused = imageStore === 'containerd';
  const images = new Map<string, number>();
  const bytesOf = async (imageId: string, signal: AbortSignal | undefined) => {
    const bytes = images.get(imageId) ?? (await port.images.find(imageId, signal))?.bytes ?? 0;
    images.set(imageId, bytes);
    return bytes;
  };
  return async (request, diskBytes, signal) => {
    const plain = async () => ({ ...(await port.containers.create(request, signal)), hasQuota: false });
    if (isRefused || diskBytes === undefined) return plain();
    const ofImage = countsImage.includes(storageDriver) ? await bytesOf(request.imageId, signal) : 0;
    const quotaBytes = ofImage + diskBytes + diskMeasure.bytes.margin;
    try {
      return { ...(await port.containers.create({ ...request, quotaBytes }, signal)), hasQuota: true };
    } catch (error) {
      if (!isEngineFailure(error, 'refused')) throw error;
      // If something else is wrong with the request, this throws too.
      const created = await plain();
      isRefused = true;
      return created;
    }
  };
}
