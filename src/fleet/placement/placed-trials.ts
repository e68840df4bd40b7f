import type { FleetDocument } from '../document.ts';
import type { PlacedTrial } from '../workflow/messages.ts';
import { queueFor } from './needs.ts';

/** A part of the list of a batch's trials, in the order of its runs. */
export function placedTrials(
  { runs, trials }: FleetDocument,
  { from, limit, taskQueue, pool }: { from: number; limit: number; taskQueue: string; pool: string },
): PlacedTrial[] {
  const count = Math.max(0, Math.min(limit, runs.length * trials - from));
  return Array.from({ length: count }, (_, index) => {
    const run = runs[Math.floor((from + index) / trials)];
    if (!run) throw new Error(`the batch has no trial ${from + index}`);
    const queue = queueFor(taskQueue, pool, run.needs);
    return { run: run.id, ordinal: (from + index) % trials, queue };
  });
}
