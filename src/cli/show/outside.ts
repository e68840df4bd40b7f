import type { TrialRecord } from '../../record/trial-record.ts';
import { ours, type Printable, styled } from '../../text/printable.ts';
import { firstOf, section } from './layout.ts';

/** How many paths a story shows. */
const inStoryMost = 12;

/**
 * The unexpected changes outside the workspace, in the sandbox in which the work was graded.
 *
 * @param whole with all paths that the record has
 */
export function outsideSection({ systemChanges }: TrialRecord, whole: boolean): Printable | undefined {
  const { unexpected, caches } = systemChanges ?? {};
  if (!unexpected || unexpected.count + (caches?.count ?? 0) === 0) return undefined;
  const { paths, count } = unexpected;
  const most = whole ? Number.POSITIVE_INFINITY : inStoryMost;
  const spare = count - paths.length;
  return section('changed outside the workspace', String(count), [
    ...firstOf(paths, most, (path) => path),
    ...(caches
      ? [styled('dim', ours(`and ${caches.count} in folders of temporary files, logs and caches`))]
      : []),
    ...(spare > 0 ? [styled('dim', ours(`… and ${spare} more, whose names were not kept`))] : []),
  ]);
}
