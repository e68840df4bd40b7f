import { randomBytes } from 'node:crypto';
import { abortable, remembered } from '../../base/deadline.ts';
import { infrastructureError } from '../../base/offsite-error.ts';
import { diskMeasure } from '../../bounds/sandbox.ts';
import type { OwnFiles } from '../own-files/volume.ts';
import { ownershipLabels } from '../owned-objects.ts';
import type { ContainerRequest } from '../port/containers.ts';
import type { Capabilities, EnginePort, UsedEngine } from '../port/engine-port.ts';
import { isEngineFailure } from '../port/failure.ts';
import { requestOf } from './container-request.ts';
import type { ContainerSpec } from './container-spec.ts';
import { removeContainer } from './remove.ts';
import type { ProbeRuntime } from './runtime-probe.ts';

export interface CreateOptions {
  name?: string;
  signal?: AbortSignal | undefined;
}

interface CreateParts extends UsedEngine {
  create: ReturnType<typeof createWithin>;
  probe: ProbeRuntime;
  ownFiles: OwnFiles;
}

/**
 * Creates a container, which does not run yet, and resolves with its id and what is known of its runtime. One
 * round trip. A `name` is unique on the engine: if it is taken, this throws a `conflict`. Throws if the
 * engine warns that it cannot enforce the spec.
 */
export async function createFromSpec(
  { port, create, capabilities, instance, probe, ownFiles }: CreateParts,
  spec: ContainerSpec,
  { name, signal }: CreateOptions,
) {
  // Only a sandbox has some.
  const isSandbox = spec.program === undefined && spec.service === undefined;
  const own = isSandbox ? ownFiles : undefined;
  const runtime = await probe(spec);
  const labels = ownershipLabels({ instance, role: 'container', createdAt: port.clock.now() }, spec.labels);
  const made = requestOf(spec, capabilities, { ...runtime, init: own ? [own.init] : [] });
  const mounts = [...(spec.mounts ?? []), ...(own ? [own.mount] : [])];
  const request = { ...made, mounts, name: name ?? nameOf(spec), labels };
  const quota = spec.diskGrows ? undefined : spec.diskBytes;
  const { id, warnings, hasQuota } = await create(request, quota, signal);
  if (warnings.length === 0) return { id, runtime, own, hasQuota };
  await removeContainer(port, id);
  throw infrastructureError(
    'ENGINE_CANNOT_ENFORCE',
    `The engine cannot enforce a limit: ${warnings.join(' ')}`,
    { hint: 'Ask for less, or use an engine that supports it.' },
  );
}

/**
 * A name by which people recognize a container of a trial: its batch, its case, which trial it is, and an end
 * that no other container has. Undefined for a container of no batch.
 */
function nameOf({ labels = {}, program, service }: ContainerSpec): string | undefined {
  const { 'offsite.batch': batch, 'offsite.case': caseName, 'offsite.ordinal': ordinal } = labels;
  if (batch === undefined) return undefined;
  const role = program ? 'relay' : service ? 'service' : undefined;
  const parts = [batch.replace(/^batch_/, '').slice(0, 8), caseName?.slice(0, 40), ordinal, role];
  const end = randomBytes(4).toString('hex');
  return ['offsite', ...parts.filter((part) => part !== undefined), end].join('-').replace(/[^\w.-]+/g, '_');
}

/** Storage whose quotas also count what a container has from its image. */
const countsImage = ['btrfs', 'zfs', 'devicemapper'];

/**
 * Creates containers with a quota of the engine's storage, a little above their disk limit, where it has
 * quotas: xfs with project quotas, btrfs, zfs. Where that is not known, it only shows when the engine refuses
 * the first container that asks for one; from then on, none asks. Undefined `diskBytes`: without a quota.
 * `hasQuota`: whether the storage itself limits what the new container takes.
 */
export function createWithin(
  port: EnginePort,
  { storageDriver, imageStore, diskQuota }: Pick<Capabilities, 'storageDriver' | 'imageStore' | 'diskQuota'>,
) {
  // With containerd's store, an engine takes the option and does nothing.
  let isRefused = imageStore === 'containerd' || diskQuota === 'no';
  const once = remembered<number>();
  const bytesOf = (imageId: string) =>
    once(imageId, async () => (await port.images.find(imageId))?.bytes ?? 0);
  return async (request: ContainerRequest, diskBytes: number | undefined, signal?: AbortSignal) => {
    const plain = async () => ({ ...(await port.containers.create(request, signal)), hasQuota: false });
    if (isRefused || diskBytes === undefined) return plain();
    const ofImage = countsImage.includes(storageDriver)
      ? await abortable(bytesOf(request.imageId), signal)
      : 0;
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
