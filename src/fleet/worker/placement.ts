import { fleetMessages } from '../../bounds/fleet.ts';
import type { FleetDocument, FleetRun } from '../document.ts';
import type { PageOrder, PlacedTrial } from '../workflow/messages.ts';

/** Memory for a trial, in bytes, by the names that task queues have. */
const memoryClasses = [
  ['512m', 512 * 1024 ** 2],
  ['2g', 2 * 1024 ** 3],
  ['8g', 8 * 1024 ** 3],
  ['32g', 32 * 1024 ** 3],
  ['128g', 128 * 1024 ** 3],
] as const;

/** The task queue of trials that need so many bytes of memory. */
function queueFor(taskQueue: string, pool: string, memory: number): string {
  const [name] = memoryClasses.find(([, bytes]) => memory <= bytes) ?? ['huge'];
  return `${taskQueue}/${pool}/${name}`;
}

/**
 * The task queues that a worker polls. It can run the smallest trials in any case.
 *
 * @param memory bytes that it has for each of the trials that it runs at a time
 */
export function queuesOf(taskQueue: string, pools: readonly string[], memory: number): string[] {
  const names = memoryClasses
    .filter(([, bytes], index) => index === 0 || bytes <= memory)
    .map(([name]) => name);
  return pools.flatMap((pool) => names.map((name) => `${taskQueue}/${pool}/${name}`));
}

/** All task queues of trials that workers of a pool may poll. */
export function allQueues(taskQueue: string, pool: string): string[] {
  return queuesOf(taskQueue, [pool], Number.POSITIVE_INFINITY);
}

/** A part of the list of a batch's trials, in the order of its runs. */
export function placedTrials(
  { runs, trials, known }: FleetDocument,
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
    const queue = queueFor(taskQueue, pool, memoryOf(run, known));
    return { run: run.id, ordinal: position - (ends[at - 1] ?? 0), queue };
  });
}

function memoryOf({ caseId, variantIndex }: FleetRun, { plan }: FleetDocument['known']): number {
  const planned = plan.cases.find(({ request }) => request.id === caseId);
  return planned?.local.environment.resources.memory ?? plan.variants[variantIndex]?.sandbox.memory ?? 0;
}
