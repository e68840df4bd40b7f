import { infrastructureError } from '../../base/offsite-error.ts';
import type { Container } from '../container.ts';
import {
  descriptionLabel,
  parentLabel,
  volumeBytesLabel,
  volumeLabel,
  volumeLabels,
} from '../owned-objects.ts';
import type { EnginePort } from '../port/engine-port.ts';
import { type Builder, lockSpec, type VolumeRequest } from './build.ts';

/** A volume that containers of this engine share. Nobody can remove it while this process runs. */
export interface SharedVolume {
  name: string;
  /** Whether this request filled it. */
  built: boolean;
}

/** More are needed only if something else removes the volume each time. */
const attemptCount = 3;
/** Milliseconds to measure a volume. Only an engine that hangs takes this long. */
const countMs = 120_000;

/**
 * Fills a volume. Its snapshot, an image of `lock` without files of its own, exists only if the volume is
 * complete. Rethrows what `build` throws.
 */
export async function fillVolume(
  builder: Builder,
  lock: Container,
  request: VolumeRequest,
  tag: string,
  signal?: AbortSignal,
): Promise<string> {
  const { port, repository } = builder;
  const { parentImageId: imageId, path } = request;
  const volume = volumeName(repository, tag);
  // An Offsite process that died may have left an incomplete volume.
  await port.remove('volume', volume, signal);
  await port.createVolume(volume, volumeLabels(volume, port.clock.now()), signal);
  let bytes: number;
  try {
    const mounts = [{ volume, path, readOnly: false }];
    await using container = await builder.createContainer(
      { ...request.container, imageId, mounts },
      { signal },
    );
    await container.start(signal);
    await request.build(container);
    bytes = await bytesBelow(container, path, signal);
  } catch (error) {
    await port.remove('volume', volume);
    throw error;
  }
  const labels = {
    [parentLabel]: imageId,
    [descriptionLabel]: request.description ?? '',
    [volumeLabel]: volume,
    [volumeBytesLabel]: String(bytes),
  };
  return await lock.commit({ repository, tag, labels }, signal);
}

/**
 * Finds or fills a volume. A container that never runs then protects it from removal. Three round trips if
 * the volume exists, two if this process holds it already.
 *
 * @param holders the containers by their volume's name
 */
export async function holdVolume(
  builder: Builder,
  request: VolumeRequest,
  tag: string,
  { holders, fill }: { holders: Map<string, Container>; fill: () => Promise<{ built: boolean }> },
  signal?: AbortSignal,
): Promise<SharedVolume> {
  const { port, repository } = builder;
  const volume = volumeName(repository, tag);
  for (let tries = 0; tries < attemptCount; tries++) {
    const { built } = await fill();
    const mounts = [{ volume, path: request.path, readOnly: true }];
    const spec = { ...lockSpec, imageId: request.parentImageId, mounts };
    const holder = holders.get(volume) ?? (await builder.createContainer(spec, { signal }));
    const other = holders.get(volume);
    if (other !== undefined && other !== holder) await holder.remove();
    else holders.set(volume, holder);
    if (await isComplete(port, volume, signal)) return { name: volume, built };
    holders.delete(volume);
    // Somebody removed the volume but not its snapshot, so the engine made an empty one for the container.
    await (other ?? holder).remove();
    await port.remove('volume', volume, signal);
    await port.remove('image', `${repository}:${tag}`, signal);
  }
  throw infrastructureError(
    'ENGINE_VOLUME_REMOVED',
    `The volume ${volume} keeps being removed by something else.`,
    { hint: 'Check what removes volumes on this engine.' },
  );
}

/** A volume that the engine made by itself has no labels. */
async function isComplete(port: EnginePort, volume: string, signal?: AbortSignal): Promise<boolean> {
  return (await port.list('volume', [`${volumeLabel}=${volume}`], signal)).length > 0;
}

function volumeName(repository: string, tag: string): string {
  return `${repository.replaceAll('/', '-')}-${tag}`;
}

async function bytesBelow(container: Container, path: string, signal?: AbortSignal): Promise<number> {
  const argv = ['du', '-sk', path];
  const { stdout } = await container.exec({ argv, timeoutMs: countMs, signal });
  return (Number.parseInt(stdout.text, 10) || 0) * 1024;
}
