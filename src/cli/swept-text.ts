import type { OwnedObject } from '../engine/owned-objects.ts';
import { plural } from '../text/quantities.ts';

/** What a sweep removed and why, in one line; undefined if that is nothing. */
export function sweptText(removed: readonly OwnedObject[], on: string): string | undefined {
  const [left, replaced] = [true, false].map((isLeft) =>
    removed.filter(({ kind }) => (kind !== 'image') === isLeft),
  );
  const parts = [
    ...(left?.length ? [`${countsOf(left)} of earlier Offsite processes that were killed`] : []),
    ...(replaced?.length ? [`${plural(replaced.length, 'snapshot')} that newer ones replaced`] : []),
  ];
  return parts.length === 0 ? undefined : `removed from ${on}: ${parts.join(', and ')}`;
}

/** Such as `2 containers, 1 volume`. */
export function countsOf(objects: readonly OwnedObject[]): string {
  const kinds = Map.groupBy(objects, ({ kind }) => kind);
  return [...kinds].map(([kind, ofKind]) => plural(ofKind.length, kind)).join(', ');
}
