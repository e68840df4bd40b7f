import type Docker from 'dockerode';
import type { EngineClient } from './connection/engine-client.ts';
import { removeContainer } from './container/remove.ts';
import { CREATED_LABEL, INSTANCE_LABEL, OWNED_LABEL, ROLE_LABEL } from './labels.ts';

/** An instance whose marker does not exist may be starting it just now; this long it is believed. */
const GRACE_MS = 60_000;

/** What a sweep removed. */
export interface Swept {
  /** Ids of containers. */
  removed: string[];
  /** The dead instances they belonged to. */
  instances: string[];
}

interface OwnedContainer {
  id: string;
  instance: string;
  marker: boolean;
  /** `created`, `running`, `exited`, ... */
  state: string;
  createdAt: number;
}

/**
 * Removes what dead instances left on this engine, and never what a living one owns. An instance lives while its marker
 * runs; it is dead when its marker has exited, or is missing while its objects are older than the grace.
 */
export async function sweepDead(
  client: EngineClient,
  instance: string,
  signal?: AbortSignal,
): Promise<Swept> {
  const owned = await listOwned(client, [OWNED_LABEL], signal);
  const byInstance = Map.groupBy(owned, (container) => container.instance);
  byInstance.delete(instance);
  const now = client.clock.now();
  const dead = [...byInstance].filter(([, containers]) => isDead(containers, now));
  const containers = dead.flatMap(([, group]) => group.sort(markersLast));
  for (const container of containers) {
    signal?.throwIfAborted();
    await removeContainer(client, container.id);
  }
  return { removed: containers.map(({ id }) => id), instances: dead.map(([name]) => name) };
}

/** Removes all of one instance's containers: for its own end. */
export async function removeOwned(client: EngineClient, instance: string): Promise<void> {
  const owned = await listOwned(client, [`${INSTANCE_LABEL}=${instance}`]);
  await Promise.all(owned.map((container) => removeContainer(client, container.id)));
}

function isDead(containers: OwnedContainer[], now: number): boolean {
  const markers = containers.filter((container) => container.marker);
  if (markers.some(({ state }) => state === 'running')) return false;
  if (markers.some(({ state }) => state === 'exited' || state === 'dead')) return true;
  return containers.every(({ createdAt }) => now - createdAt > GRACE_MS);
}

/** A sweep that is interrupted must leave the marker that proves the death. */
function markersLast(a: OwnedContainer, b: OwnedContainer): number {
  return Number(a.marker) - Number(b.marker);
}

async function listOwned(
  client: EngineClient,
  labels: string[],
  signal?: AbortSignal,
): Promise<OwnedContainer[]> {
  const filters = encodeURIComponent(JSON.stringify({ label: labels }));
  const listed = await client.call(
    'listing the containers of all instances',
    (abortSignal) =>
      client.dial<Docker.ContainerInfo[]>({
        method: 'GET',
        path: `/containers/json?all=true&filters=${filters}`,
        expected: [200],
        abortSignal,
      }),
    { signal },
  );
  return listed.map((container) => ({
    id: container.Id,
    instance: container.Labels[INSTANCE_LABEL] ?? '',
    marker: container.Labels[ROLE_LABEL] === 'marker',
    state: container.State,
    createdAt: Number(container.Labels[CREATED_LABEL] ?? container.Created * 1000),
  }));
}
