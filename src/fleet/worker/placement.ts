import type { FleetDocument, FleetRun } from '../document.ts';
import type { PlacedTrial } from '../workflow/messages.ts';

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
  { from, limit, taskQueue, pool }: { from: number; limit: number; taskQueue: string; pool: string },
): PlacedTrial[] {
  const count = Math.max(0, Math.min(limit, runs.length * trials - from));
  return Array.from({ length: count }, (_, index) => {
    const run = runs[Math.floor((from + index) / trials)];
    if (!run) throw new Error(`the batch has no trial ${from + index}`);
    const queue = queueFor(taskQueue, pool, memoryOf(run, known));
    return { run: run.id, ordinal: (from + index) % trials, queue };
  });
}

function memoryOf({ caseId, variantIndex }: FleetRun, { plan }: FleetDocument['known']): number {
  const planned = plan.cases.find(({ request }) => request.id === caseId);
  return planned?.local.environment.resources.memory ?? plan.variants[variantIndex]?.sandbox.memory ?? 0;
}
