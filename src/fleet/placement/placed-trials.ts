import { fleetMessages } from '../../bounds/fleet.ts';
import type { FleetDocument } from '../document.ts';
import type { PageOrder, PlacedTrial } from '../workflow/messages.ts';
import { queueFor } from './needs.ts';

/** A part of the list of a batch's trials, in the order of its runs. */
export function placedTrials(
  { runs, trials }: FleetDocument,
  { list, taskQueue, pool }: Omit<PageOrder, 'document'>,
): PlacedTrial[] {
  const { first, step, count } = list;
  const ends: number[] = [];
  for (const run of runs) ends.push((ends.at(-1) ?? 0) + (run.trials ?? trials));
  const last = ends.at(-1) ?? 0;
  const most = Math.min(count, fleetMessages.count.page, Math.max(0, Math.ceil((last - first) / step)));
  return Array.from({ length: most }, (_, index) => {
    const position = first + index * step;
    const at = ends.findIndex((end) => position < end);
    const run = runs[at];
    if (!run) throw new Error(`the batch has no trial ${position}`);
    const queue = queueFor(taskQueue, pool, run.needs);
    return { run: run.id, ordinal: position - (ends[at - 1] ?? 0), queue };
  });
}
