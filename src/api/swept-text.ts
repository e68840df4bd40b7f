import type { OwnedObject } from '../engine/owned-objects.ts';
import { plural } from '../text/quantities.ts';

const ofEnded = 'whose Offsite process no longer runs';

/** What a sweep removed and why, in one line; undefined if that is nothing. */
export function sweptText(removed: readonly OwnedObject[], on: string): string | undefined {
  const [left, replaced] = [true, false].map((isLeft) =>
    removed.filter(({ kind }) => (kind !== 'image') === isLeft),
  );
  const parts = [
    // An engine has no data folder: who removes them may have run nothing.
    ...(left?.length ? [`${countsOf(left)}, of this or another data folder, ${ofEnded}`] : []),
    ...(replaced?.length ? [`${plural(replaced.length, 'snapshot')} that newer ones replaced`] : []),
  ];
  return parts.length === 0 ? undefined : `removed from ${on}: ${parts.join(', and ')}`;
}

/** What to do about objects that an engine does not remove; undefined if there are none. */
export function stuckText(stuck: readonly OwnedObject[], on: string): string | undefined {
  const [first] = stuck;
  if (first === undefined) return undefined;
  const ids = stuck.map(({ id }) => id.replace('sha256:', '').slice(0, 12)).join(', ');
  return (
    `${on} does not remove ${countsOf(stuck)} ${ofEnded}: ${ids}. ` +
    'If `docker inspect` of one hangs, restart the engine; it is tried again at the next start'
  );
}

/** Such as `2 containers, 1 volume`. */
export function countsOf(objects: readonly OwnedObject[]): string {
  const kinds = Map.groupBy(objects, ({ kind }) => kind);
  return [...kinds].map(([kind, ofKind]) => plural(ofKind.length, kind)).join(', ');
}
