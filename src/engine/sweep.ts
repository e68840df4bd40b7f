import pLimit from 'p-limit';
import { abortable, startDeadline } from '../base/deadline.ts';
import { removeContainer } from './container/remove.ts';
import { graceMs, hasEnded, isDead, isMarker, ownerEnded, reconnectMs } from './liveness-marker.ts';
import {
  containersOf,
  incompleteVolumes,
  namelessImages,
  type OwnedObject,
  ownedObjects,
} from './owned-objects.ts';
import type { EnginePort } from './port/engine-port.ts';
import { isEngineFailure } from './port/failure.ts';
import { longestBuildMs } from './snapshot/build.ts';

/** What a sweep found. */
export interface Swept {
  /** The objects that were removed, or would be in a dry run. */
  removed: OwnedObject[];
  /** The objects that something else still uses, so the engine keeps them. */
  left: OwnedObject[];
  /** The objects whose removal the engine did not confirm in time. A later sweep finds them again. */
  stuck: OwnedObject[];
  /** The dead instances they belonged to. */
  instances: string[];
}

export interface SweepOptions {
  /** Find objects without removing them. */
  dryRun?: boolean;
  /**
   * Only what dead instances left, not what nobody can find any more: for that, the engine lists all of its
   * images, which takes a tenth of a second if there are hundreds. Default: both.
   */
  only?: 'left' | undefined;
  signal?: AbortSignal | undefined;
}

/**
 * Removes what dead instances left on this engine (containers, networks, volumes), snapshots that lost their
 * name, and volumes that were never completed, but never what a living instance owns. An instance lives while
 * its process or its marker is seen to run; see liveness-marker.ts.
 */
export async function sweepDead(
  port: EnginePort,
  instance: string,
  { dryRun = false, only, signal }: SweepOptions = {},
): Promise<Swept> {
  const lost = only === 'left' ? [] : await lostObjects(port, signal);
  const dead = await deadInstances(port, instance, signal);
  const swept: Swept = { removed: [], left: [], stuck: [], instances: dead.map(([name]) => name) };
  const limit = pLimit(removalsAtATime);
  const remove = (objects: OwnedObject[]) =>
    allOf(
      objects.map((object) =>
        limit(async () => {
          const fate = dryRun ? 'removed' : await fateOf(port, object, signal);
          swept[fate].push(object);
          return fate;
        }),
      ),
    );
  await allOf(
    dead.map(async ([, objects]) => {
      const { container = [], marker = [], other = [] } = Object.groupBy(objects, stageOf);
      // Containers use networks and volumes.
      const fates = [...(await remove(container)), ...(await remove(other))];
      // The marker proves to the next sweep that the instance is dead.
      if (!fates.includes('stuck')) await remove(marker);
    }),
  );
  // After the containers, which use these images and volumes.
  await remove(lost);
  return swept;
}

async function lostObjects(port: EnginePort, signal: AbortSignal | undefined): Promise<OwnedObject[]> {
  const images = await namelessImages(port, signal);
  const volumes = await incompleteVolumes(port, signal);
  const now = port.clock.now();
  return [
    // A new image gets its name a moment after it is created.
    ...images.filter(({ createdAt }) => now - createdAt > graceMs),
    ...volumes.filter(({ createdAt }) => now - createdAt > longestBuildMs),
  ];
}

function stageOf(object: OwnedObject): 'container' | 'marker' | 'other' {
  if (isMarker(object)) return 'marker';
  return object.kind === 'container' ? 'container' : 'other';
}

/** Waits for all, even if one rejects, so that none still runs when the caller continues. */
async function allOf<Result>(promises: readonly Promise<Result>[]): Promise<Result[]> {
  await Promise.allSettled(promises);
  return Promise.all(promises);
}

const removalsAtATime = 4;

/** Milliseconds. An engine may never remove a container if a process in it stopped the start of a command. */
const stuckMs = 30_000;

async function fateOf(
  port: EnginePort,
  object: OwnedObject,
  signal: AbortSignal | undefined,
): Promise<'removed' | 'left' | 'stuck'> {
  signal?.throwIfAborted();
  using deadline = startDeadline(port.clock, stuckMs);
  const late = deadline.reached.then(() => 'stuck' as const);
  return await abortable(Promise.race([removeObject(port, object), late]), signal);
}

type Instances = [name: string, objects: OwnedObject[]][];

/** Checks again a few seconds later if the first check finds ended markers of processes it cannot see. */
async function deadInstances(port: EnginePort, own: string, signal?: AbortSignal): Promise<Instances> {
  const dead = await seemDead(port, own, signal);
  const isOpen = (objects: readonly OwnedObject[]) =>
    ownerEnded(objects) === undefined && objects.some((object) => isMarker(object) && hasEnded(object));
  if (!dead.some(([, objects]) => isOpen(objects))) return dead;
  await port.clock.sleep(reconnectMs, signal);
  const before = new Set(dead.map(([name]) => name));
  return (await seemDead(port, own, signal)).filter(([name]) => before.has(name));
}

async function seemDead(port: EnginePort, own: string, signal?: AbortSignal): Promise<Instances> {
  const byInstance = Map.groupBy(await ownedObjects(port, signal), ({ instance }) => instance);
  for (const living of [own, '']) byInstance.delete(living);
  const now = port.clock.now();
  return [...byInstance].filter(([, objects]) => isDead(objects, now));
}

/** Removes all containers of one instance, when that instance ends. */
export async function removeOwned(port: EnginePort, instance: string): Promise<void> {
  const owned = await containersOf(port, instance);
  await Promise.all(owned.map((container) => removeContainer(port, container.id)));
}

/** `left`: the engine keeps it because something else uses it. */
async function removeObject(port: EnginePort, { kind, id }: OwnedObject): Promise<'removed' | 'left'> {
  try {
    await (kind === 'container' ? removeContainer(port, id) : port.remove(kind, id));
    return 'removed';
  } catch (thrown) {
    if (kind !== 'container' && isEngineFailure(thrown, 'conflict')) return 'left';
    throw thrown;
  }
}
