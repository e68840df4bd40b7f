import { messageOf } from '../../base/offsite-error.ts';
import { assertEnforceable } from '../../engine/capabilities.ts';
import type { ContainerSpec, ServiceProgram } from '../../engine/container/container-spec.ts';
import type { Engine } from '../../engine/engine.ts';
import { networkObstacle } from '../../engine/network/network.ts';
import type { Image } from '../../engine/port/images.ts';
import type { ServiceSpec } from '../../engine/service.ts';
import type { EnvironmentStep, UsedImage } from '../../record/environment.ts';
import { isPathTooLong } from '../../suite/environment.ts';
import type { PlannedService, ServiceHealthcheck } from '../../suite/services.ts';
import { TrialFailure, unusable } from '../blame.ts';
import { baseEnvironment } from '../prepare/environment.ts';
import type { TrialSpec } from '../spec.ts';
import { builtImage } from './built-image.ts';
import type { ImageWork } from './image-parts.ts';
import { imageOfBuild, requireImage, usedImage } from './obtain-image.ts';

/** A service with its image, ready to be started. */
export interface ServiceImage {
  planned: PlannedService;
  /** What its container is made of, without network and labels. */
  container: Omit<ServiceSpec, 'network'>;
  /** The folders in which its program is looked for. */
  path: string[];
  healthcheck: ServiceHealthcheck | undefined;
}

export interface ServiceImages {
  services: ServiceImage[];
  /** The images that they are based on. */
  images: UsedImage[];
  /** The builds of their images. */
  steps: EnvironmentStep[];
}

/**
 * Finds, pulls or builds the images of a case's services. Throws a {@link TrialFailure} if one is missing,
 * cannot be built, or cannot be run here.
 */
export async function serviceImages(work: ImageWork, spec: TrialSpec): Promise<ServiceImages> {
  const { engine, signal } = work;
  const { services: planned = [] } = spec.environment;
  const steps: EnvironmentStep[] = [];
  const images: UsedImage[] = [];
  const services: ServiceImage[] = [];
  for (const service of planned) {
    const { image, build, place } = service;
    // The build takes the place of the case's build; its own place and files identify it.
    const environment = { ...spec.environment, build };
    const built = await builtImage(work, { ...spec, environment });
    if (built) steps.push(built.step);
    const named = { name: image?.name ?? '', place: image?.place ?? place, phase: 'sandbox' as const };
    const found = built
      ? await imageOfBuild(engine, built.step.image, signal)
      : await requireImage(work, { ...named, used: image?.mappedTo ?? named.name }, signal);
    images.push(...(built?.bases ?? [usedImage(image?.mappedTo ?? named.name, found)]));
    services.push(await usable(engine, spec, service, found, signal));
  }
  return { services, images, steps };
}

async function usable(
  engine: Engine,
  spec: TrialSpec,
  planned: PlannedService,
  image: Image,
  signal: AbortSignal,
): Promise<ServiceImage> {
  const { name, place } = planned;
  const container = containerOf(spec, planned, image);
  const obstacle = networkObstacle(container, engine.capabilities);
  if (obstacle !== undefined) throw unusable(`${place}: services cannot run on this engine: ${obstacle}`);
  if (container.service.command.length === 0)
    throw unusable(`${place}: the image of the service ${name} names no command, and the service has none`);
  if (isPathTooLong(container.workingDir))
    throw unusable(`${place}: the working folder of the service ${name} is longer than engines take`);
  try {
    assertEnforceable({ ...container, network: 'none' }, engine.capabilities);
  } catch (error) {
    throw unusable(`${place}: ${messageOf(error)}`);
  }
  await requireEmptyVolumes(engine, planned, image, container, signal);
  const { PATH = '' } = { ...baseEnvironment(image), ...container.service.env };
  return { planned, container, path: PATH.split(':'), healthcheck: healthcheckOf(planned, image) };
}

function containerOf(
  { sandbox }: TrialSpec,
  { name, entrypoint, command, env, workdir, user, memoryFolders, resources }: PlannedService,
  image: Image,
): Omit<ServiceSpec, 'network'> {
  const own = entrypoint === undefined ? image.command : [];
  const maxBytes = resources.disk ?? sandbox.disk;
  const service: ServiceProgram = {
    command: [...(entrypoint ?? image.entrypoint), ...(command ?? own)],
    env,
    // A volume on the engine's disk has no limit there.
    memoryFolders: [...new Set([...image.volumes, ...memoryFolders])].map((path) => ({ path, maxBytes })),
  };
  const runsAs = user ?? (image.user === '' ? undefined : image.user);
  const spec: Omit<ContainerSpec, 'network'> = {
    imageId: image.id,
    security: sandbox.security,
    hostName: name,
    memoryBytes: resources.memory ?? sandbox.memory,
    cpus: resources.cpus ?? sandbox.cpus,
    diskBytes: maxBytes,
    pids: sandbox.pids,
    nofile: sandbox.nofile,
    filter: sandbox.seccomp,
    workingDir: workdir ?? (image.workingDir === '' ? '/' : image.workingDir),
    ...(runsAs !== undefined && { user: runsAs }),
    ...(sandbox.runtime !== undefined && { runtime: sandbox.runtime }),
  };
  return { ...spec, service };
}

/** The image's volumes become folders in memory, which begin empty. */
async function requireEmptyVolumes(
  engine: Engine,
  { name, place, files = [] }: PlannedService,
  image: Image,
  container: Omit<ServiceSpec, 'network'>,
  signal: AbortSignal,
): Promise<void> {
  const folders = container.service.memoryFolders.map(({ path }) => path);
  for (const { path } of files) {
    const folder = folders.find((each) => path.startsWith(`${each}/`));
    if (folder !== undefined)
      throw unusable(
        `${place}: ${path} cannot be put into ${folder}, a folder in memory of the service ${name}`,
      );
  }
  if (image.volumes.length === 0) return;
  // Not as a service, because its folders in memory would hide the files of the volumes.
  const { service, ...plain } = container;
  await using look = await engine.createContainer({ ...plain, network: 'none' }, signal);
  for (const volume of image.volumes) {
    for await (const { path } of look.archive(volume, signal)) {
      if (path === '') continue;
      const why = 'Offsite keeps volumes in memory, where they begin empty';
      throw unusable(`${place}: the image of the service ${name} has files in its volume ${volume}; ${why}`);
    }
  }
}

/** The defaults are the engine's. */
function healthcheckOf(
  { healthcheck }: PlannedService,
  { healthcheck: own }: Image,
): ServiceHealthcheck | undefined {
  if (healthcheck !== undefined) return healthcheck === 'none' ? undefined : healthcheck;
  if (!own) return undefined;
  const { command, interval = 30_000, timeout = 30_000, startPeriod = 0, retries = 3 } = own;
  return {
    command: typeof command === 'string' ? command : [...command],
    interval,
    timeout,
    startPeriod,
    retries,
  };
}
