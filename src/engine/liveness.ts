import { ROLE_LABEL } from './labels.ts';
import type { OwnedObject } from './owned-objects.ts';

/**
 * An instance whose marker does not exist may be starting it just now; this long (in milliseconds) it is
 * believed.
 */
export const GRACE_MS = 60_000;

/**
 * A marker ends with its agent's connection to the engine as well; an agent that only lost that makes another
 * at once. So long, in milliseconds, after a marker was seen ended it must still be so.
 */
export const RECONNECT_MS = 3_000;

/**
 * Whether the instance that owns `objects` (all of its containers among them) is dead: its marker has ended,
 * or is missing while everything it has is older than the grace. One that is about to start is as good as one
 * that is missing.
 */
export function isDead(objects: readonly OwnedObject[], now: number): boolean {
  const markers = objects.filter(isMarker);
  if (markers.some(({ state }) => state === 'running')) return false;
  const isStarting = markers.some(
    ({ state, createdAt }) => state === 'created' && now - createdAt <= GRACE_MS,
  );
  if (!isStarting && markers.some(hasEnded)) return true;
  return objects.every(({ createdAt }) => now - createdAt > GRACE_MS);
}

/** Of a marker. */
export function hasEnded({ state }: OwnedObject): boolean {
  return state === 'exited' || state === 'dead';
}

export function isMarker({ labels }: OwnedObject): boolean {
  return labels[ROLE_LABEL] === 'marker';
}
