import { roleLabel } from './labels.ts';
import type { OwnedObject } from './owned-objects.ts';

/** Milliseconds for which an instance without a marker counts as alive: it may be starting its marker. */
export const graceMs = 60_000;

/**
 * A marker also ends when its Offsite process loses the connection to the engine; the process then starts a
 * new marker at once. So an ended marker proves that the process is dead only if there is still no new one
 * this many milliseconds later.
 */
export const reconnectMs = 3_000;

/**
 * Whether the instance that owns `objects` (which include all of its containers) is dead: its marker has
 * ended, or is missing and everything it owns is older than the grace period. A marker that is about to start
 * counts as missing.
 */
export function isDead(objects: readonly OwnedObject[], now: number): boolean {
  const markers = objects.filter(isMarker);
  if (markers.some(({ state }) => state === 'running')) return false;
  const isStarting = markers.some(
    ({ state, createdAt }) => state === 'created' && now - createdAt <= graceMs,
  );
  if (!isStarting && markers.some(hasEnded)) return true;
  return objects.every(({ createdAt }) => now - createdAt > graceMs);
}

/** Whether a marker has ended. */
export function hasEnded({ state }: OwnedObject): boolean {
  return state === 'exited' || state === 'dead';
}

export function isMarker({ labels }: OwnedObject): boolean {
  return labels[roleLabel] === 'marker';
}
