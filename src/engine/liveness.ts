import { ROLE_LABEL } from './labels.ts';
import type { OwnedObject } from './owned-objects.ts';

/** An instance whose marker does not exist may be starting it just now; this long (in milliseconds) it is believed. */
export const GRACE_MS = 60_000;

/**
 * Whether the instance that owns `objects` (all of its containers among them) is dead: its marker has ended, or is missing while
 * everything it has is older than the grace.
 */
export function isDead(objects: readonly OwnedObject[], now: number): boolean {
  const markers = objects.filter(isMarker);
  if (markers.some(({ state }) => state === 'running')) return false;
  if (markers.some(({ state }) => state === 'exited' || state === 'dead')) return true;
  return objects.every(({ createdAt }) => now - createdAt > GRACE_MS);
}

export function isMarker({ labels }: OwnedObject): boolean {
  return labels[ROLE_LABEL] === 'marker';
}
