import { type BackoffLimits, backoff, type Clock } from '../../base/clock.ts';
import { infrastructureError } from '../../base/offsite-error.ts';
import type { ContainerSpec } from '../container/container-spec.ts';
import type { CreateOptions } from '../container/create.ts';
import { removeContainer } from '../container/remove.ts';
import type { Container } from '../container.ts';
import { isDead } from '../liveness-marker.ts';
import {
  createdLabel,
  descriptionLabel,
  ownedContainers,
  parentLabel,
  snapshotLabels,
} from '../owned-objects.ts';
import type { EnginePort } from '../port/engine-port.ts';
import { isEngineFailure } from '../port/failure.ts';

interface SharedRequest {
  /**
   * Everything that the result depends on except the parent image: script, files, environment, user. Hashed,
   * never shown.
   */
  key: string;
  /** A description for lists of images; shown, not part of the key. */
  description?: string;
  /** Called before this request waits until another Offsite process has built the same snapshot. */
  waits?(): void;
}

/** A step that turns one image into another: the container it runs in, and what it does in it. */
export interface SnapshotRequest extends SharedRequest {
  parentImageId: string;
  /** The container it is built in. */
  container: Omit<ContainerSpec, 'imageId'>;
  /** Creates the state in a started container. `snapshot()` rethrows what this throws. */
  build(container: Container): Promise<unknown>;
}

/** A volume to fill, and the container that fills it. */
export interface VolumeRequest extends SnapshotRequest {
  /** Absolute; where the volume is in that container, and must be in all others. */
  path: string;
}

/** An image that the engine's builder makes. */
export interface ImageRequest extends SharedRequest {
  /** Any image. During the build, a container of it exists as the lock; it is never started. */
  lockImageId: string;
  /** The image that it is made from, whose size is not counted. Undefined if there is none. */
  parentImageId: string | undefined;
  /** Makes the image with this name and these labels. `image()` rethrows what this throws. */
  make(image: { name: string; labels: Readonly<Record<string, string>> }): Promise<unknown>;
}

export interface Builder {
  port: EnginePort;
  instance: string;
  /** The snapshots' name without a tag. */
  repository: string;
  createContainer(spec: ContainerSpec, options: CreateOptions): Promise<Container>;
}

/** A state that an image cannot keep: these commands still ran when `build` was done. */
export interface NotSnapshotable {
  kind: 'not-snapshotable';
  processes: string[];
}

/**
 * Brings a container into the state of a snapshot, and makes an image of it. Rethrows what `build` throws.
 */
export async function commitBuilt(
  { port, repository }: Builder,
  container: Container,
  request: SnapshotRequest,
  tag: string,
  signal?: AbortSignal,
): Promise<string | NotSnapshotable> {
  await container.start(signal);
  await request.build(container);
  const processes = await processesLeft(container, port.clock);
  if (processes.length > 0) return { kind: 'not-snapshotable', processes };
  const labels = { [parentLabel]: request.parentImageId, [descriptionLabel]: request.description ?? '' };
  return await container.commit({ repository, tag, labels }, signal);
}

/** Milliseconds. A process that ends within this time does not count as left running. */
const endingMs = 1_000;
const betweenListsMs = 50;

/**
 * The commands of the processes that keep running. A process that a command has just left behind, or that the
 * container's first process ran as it started, gets time to end.
 */
async function processesLeft(container: Container, clock: Clock): Promise<string[]> {
  const until = clock.now() + endingMs;
  for (;;) {
    const processes = await container.processes();
    if (processes.length === 0 || clock.now() >= until) return processes.map(({ command }) => command);
    await clock.sleep(betweenListsMs);
  }
}

/** Has the engine's builder make an image. Rethrows what `make` throws. */
export async function makeImage(
  { port, repository }: Builder,
  request: ImageRequest,
  tag: string,
  signal?: AbortSignal,
): Promise<string> {
  const name = `${repository}:${tag}`;
  const labels: Record<string, string> = {
    [parentLabel]: request.parentImageId ?? '',
    [descriptionLabel]: request.description ?? '',
    ...snapshotLabels(port.clock.now()),
  };
  await request.make({ name, labels });
  const made = await port.images.find(name, signal);
  if (made && made.labels[createdLabel] === labels[createdLabel]) return made.id;
  throw infrastructureError('IMAGE_ELSEWHERE', `The image ${name} was built, but not on this engine.`, {
    hint: 'Check which engine and builder the docker CLI uses.',
  });
}

/** A container that does not run. */
export const lockSpec = {
  network: 'none' as const,
  security: 'compatible' as const,
  memoryBytes: 16 * 1024 ** 2,
  cpus: 1,
  pids: 4,
  workingDir: '/',
  filter: 'if-available' as const,
};

/** The container to build in. Its name makes it the only one of its kind on the engine. */
export async function takeTurn(
  { port, instance, repository, createContainer }: Builder,
  spec: ContainerSpec,
  request: Pick<SnapshotRequest, 'waits'>,
  tag: string,
  signal?: AbortSignal,
): Promise<Container> {
  const name = `${repository.replaceAll('/', '-')}-${tag}`;
  for (;;) {
    try {
      return await createContainer(spec, { name, signal });
    } catch (thrown) {
      if (!isEngineFailure(thrown, 'conflict')) throw thrown;
    }
    request.waits?.();
    await otherBuildOver(port, instance, name, signal);
  }
}

/** Milliseconds between two checks. Random, because several Offsite processes may wait for one build. */
const waits: BackoffLimits = { first: 100, longest: 2_000 };
/** Milliseconds added to every wait, so that a short build does not cause a burst of requests. */
const leastMs = 50;
/**
 * Milliseconds, longer than any build may take. The wait ends after them, because the container of that name
 * may not belong to a build.
 */
export const longestBuildMs = 2 * 3_600_000;

/**
 * Waits while another Offsite process builds a snapshot in the container `name`. A name is unique on an
 * engine, so the container is the lock. Resolves when it is gone. Removes the container if its process is
 * dead, so that a build does not wait for a sweep. One round trip per check.
 */
async function otherBuildOver(
  port: EnginePort,
  instance: string,
  name: string,
  signal?: AbortSignal,
): Promise<void> {
  const { clock } = port;
  const giveUpAt = clock.now() + longestBuildMs;
  for (let checks = 1; clock.now() < giveUpAt; checks += 1) {
    await clock.sleep(leastMs + backoff(checks, waits, Math.random), signal);
    const owned = await ownedContainers(port, signal);
    const lock = owned.find((container) => container.name === name);
    if (lock === undefined) return;
    const siblings = owned.filter((container) => container.instance === lock.instance);
    // A container of this instance is left from an earlier build that could not remove it: builds of one
    // process wait for each other before they get here.
    if (lock.instance === instance || isDead(siblings, clock.now())) {
      await removeContainer(port, lock.id);
      return;
    }
  }
  throw infrastructureError(
    'ENGINE_SNAPSHOT_BUSY',
    `The container ${name} has blocked the build of a snapshot for hours.`,
    { hint: `Check who created it (docker inspect ${name}), and remove it.` },
  );
}
