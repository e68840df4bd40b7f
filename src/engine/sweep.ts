import { OffsiteError } from '../offsite-error.ts';
import type { EngineClient } from './connection/engine-client.ts';
import { removeContainer } from './container/remove.ts';
import { engineStatus } from './failure.ts';
import { GRACE_MS, hasEnded, isDead, isMarker, RECONNECT_MS } from './liveness.ts';
import {
  containersOf,
  namelessImages,
  type OwnedObject,
  ownedContainers,
  ownedNetworks,
  ownedVolumes,
} from './owned-objects.ts';

/** What a sweep found. */
export interface Swept {
  /** What was removed, or would be. */
  removed: OwnedObject[];
  /** What something else still uses, so that the engine keeps it. */
  left: OwnedObject[];
  /** The dead instances they belonged to. */
  instances: string[];
}

export interface SweepOptions {
  /** Only look. */
  dryRun?: boolean;
  signal?: AbortSignal | undefined;
}

/**
 * Removes what dead instances left on this engine (containers, networks, volumes) and snapshots that lost their name, and never
 * what a living instance owns. An instance lives while its marker runs; see liveness.ts.
 */
export async function sweepDead(
  client: EngineClient,
  instance: string,
  { dryRun = false, signal }: SweepOptions = {},
): Promise<Swept> {
  const images = await namelessImages(client, signal);
  const dead = await deadInstances(client, instance, signal);
  const now = client.clock.now();
  const found = [
    ...dead.flatMap(([, objects]) => objects.sort(markersLast)),
    // One that is being made gets its name a moment after it is there.
    ...images.filter(({ createdAt }) => now - createdAt > GRACE_MS),
  ];
  const swept: Swept = { removed: [], left: [], instances: dead.map(([name]) => name) };
  for (const object of found) {
    signal?.throwIfAborted();
    const gone = dryRun || (await removeObject(client, object));
    swept[gone ? 'removed' : 'left'].push(object);
  }
  return swept;
}

type Instances = [name: string, objects: OwnedObject[]][];

/** With a second look, some seconds later, where the first one found markers that have ended. */
async function deadInstances(client: EngineClient, own: string, signal?: AbortSignal): Promise<Instances> {
  const dead = await seemDead(client, own, signal);
  if (!dead.some(([, objects]) => objects.some((object) => isMarker(object) && hasEnded(object))))
    return dead;
  await client.clock.sleep(RECONNECT_MS, signal);
  const before = new Set(dead.map(([name]) => name));
  return (await seemDead(client, own, signal)).filter(([name]) => before.has(name));
}

async function seemDead(client: EngineClient, own: string, signal?: AbortSignal): Promise<Instances> {
  const lists = [ownedContainers, ownedNetworks, ownedVolumes].map((list) => list(client, signal));
  const byInstance = Map.groupBy((await Promise.all(lists)).flat(), (object) => object.instance);
  for (const living of [own, '']) byInstance.delete(living);
  const now = client.clock.now();
  return [...byInstance].filter(([, objects]) => isDead(objects, now));
}

/** Removes all of one instance's containers: for its own end. */
export async function removeOwned(client: EngineClient, instance: string): Promise<void> {
  const owned = await containersOf(client, instance);
  await Promise.all(owned.map((container) => removeContainer(client, container.id)));
}

/** A sweep that is interrupted must leave the marker that proves the death. */
function markersLast(a: OwnedObject, b: OwnedObject): number {
  return Number(isMarker(a)) - Number(isMarker(b));
}

/** False where the engine keeps it, since something that is not ours uses it. */
async function removeObject(client: EngineClient, { kind, id }: OwnedObject): Promise<boolean> {
  if (kind === 'container') {
    await removeContainer(client, id);
    return true;
  }
  try {
    await client.call(`removing a ${kind}`, (abortSignal) =>
      client.dial({
        method: 'DELETE',
        path: kind === 'image' ? `/images/${id}?noprune=true` : `/${kind}s/${encodeURIComponent(id)}`,
        expected: [200, 204, 404],
        abortSignal,
      }),
    );
    return true;
  } catch (thrown) {
    // 403 is said of a network that has members, 409 of volumes and images in use.
    const status = thrown instanceof OffsiteError ? engineStatus(thrown.cause) : undefined;
    if (status === 403 || status === 409) return false;
    throw thrown;
  }
}
