import { registerHooks } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { PageOrder, TrialOrder } from '../../src/fleet/worker/orders.ts';
import type { Share } from '../../src/fleet/workflow/messages.ts';

/** What Temporal gives to a workflow, without a server: so a batch can refuse what a slice gives back. */
const double = {
  ActivityFailure: Error,
  ApplicationFailure: Error,
  isCancellation: (error: Error) => error.name === 'CancelledFailure',
  async condition(holds: () => boolean) {
    while (!holds()) await sleep(1);
  },
  proxyActivities: () => ({
    offsiteTrialPage: async ({ list: { first, count } }: PageOrder) =>
      Array.from({ length: count }, (_, index) => ({ run: 'run', ordinal: first + index, queue: 'q' })),
    async offsiteTrial({ ordinal }: TrialOrder) {
      await sleep(20 * ordinal);
      return { verdict: 'passed', ms: 1, usd: 1, worker: 'test' };
    },
  }),
};
// Such hooks hold for the whole process, which files of short tests share: so this is a file of its own process.
Object.assign(globalThis, { workflowDouble: double });
const url = `data:text/javascript,export const { ${Object.keys(double)} } = globalThis.workflowDouble`;
registerHooks({
  resolve: (name, context, next) =>
    name === '@temporalio/workflow' ? { url, shortCircuit: true } : next(name, context),
});
const { Trials } = await import('../../src/fleet/workflow/trials.ts');

function trialsWith(giveBack: (share: Share) => Promise<void>) {
  return new Trials({
    batch: 'b',
    document: '',
    taskQueue: 'offsite',
    pool: 'default',
    heartbeatMs: 60_000,
    priority: 3,
    list: { first: 0, count: 10 },
    permits: 10,
    budget: { usd: 50 },
    trialBudget: { usd: 2 },
    isPaused: false,
    awaits: false,
    giveBack,
  });
}

test('what the batch refuses to take back stays with the slice, which goes on', async () => {
  const given: Share[] = [];
  let refusals = 3;
  const trials = trialsWith(async (share) => {
    if (refusals-- > 0) throw new Error('the batch does not run');
    given.push(share);
  });
  await trials.work();
  expect(trials.ended()).toMatchObject({ scheduled: 10, passed: 10, lost: 0 });
  // Each permit goes back once, but those of the trials that end last.
  const permits = given.reduce((sum, share) => sum + share.permits, 0);
  expect(permits).toBe(9);
});

test('a slice whose batch is canceled while it gives back ends as canceled', async () => {
  const canceled = Object.assign(new Error('canceled'), { name: 'CancelledFailure' });
  const trials = trialsWith(() => Promise.reject(canceled));
  await expect(trials.work()).rejects.toBe(canceled);
  await trials.settled();
});
