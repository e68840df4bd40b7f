import { Worker } from '@temporalio/worker';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { BatchHandle } from '../../src/fleet/batch-handle.ts';
import { workflowBundle } from '../../src/fleet/workflow-bundle.ts';
import { readHistory, writeHistory } from './histories.ts';
import { openWorkflows, type WorkflowPlace } from './workflow-place.ts';

let place: WorkflowPlace;
beforeAll(async () => {
  place = await openWorkflows();
});
afterAll(() => place[Symbol.asyncDispose]());

const soon = { timeout: 60_000, interval: 50 };

/** The positions of the trials that ran, in the order of their starts. */
function positions(): number[] {
  return place.counts.ran.map((name) => Number(name.slice('run/'.length)));
}

async function statusesOf(query: string): Promise<string[]> {
  const found = await Array.fromAsync(place.client.workflow.list({ query }));
  return found.map(({ status }) => status.name);
}

test('the first trials of a slice start while the last of the slice before it run', async () => {
  place.trial.summary = { verdict: 'passed', ms: 50, worker: 'test' };
  // The last trial of the first slice ends when most of the second slice have.
  place.trial.ms = (position) => (position === 19 ? 5_000 : 50);
  const running = place.run('flow', { trials: 60, slice: 20 });
  await expect.poll(() => positions().filter((position) => position >= 20).length, soon).toBeGreaterThan(15);
  expect(place.counts.now).toBeGreaterThan(0);
  const outcome = await running;
  expect(outcome).toMatchObject({ scheduled: 60, passed: 60, lost: 0, outOfBudget: false });
  expect(positions().toSorted((one, other) => one - other)).toEqual(
    Array.from({ length: 60 }, (_, at) => at),
  );
  expect(place.counts.most).toBe(4);
  const slices = await statusesOf("ParentWorkflowId = 'flow'");
  expect(slices).toEqual(['COMPLETED', 'COMPLETED', 'COMPLETED']);
});

test('a batch in slices has one progress, with each result once', async () => {
  place.trial.ms = () => 100;
  place.trial.summary = { verdict: 'failed', ms: 100, tokens: 10, worker: 'test' };
  const handle = new BatchHandle(
    (await place.start('told', { trials: 60, slice: 20 })).workflowId,
    place.client,
  );
  const seen = new Map<string, number>();
  const results: string[] = [];
  const look = async () => {
    const { results: more, ...counts } = await handle.progress(seen);
    results.push(...more.map(({ trial }) => trial));
    expect(counts.scheduled).toBeLessThanOrEqual(counts.failed + 4);
    expect(counts.spent.tokens).toBe(10 * counts.failed);
    expect(counts.trials).toBe(60);
    return counts.failed;
  };
  await expect.poll(async () => (await handle.standing()).open.length, soon).toBeGreaterThan(0);
  await expect.poll(look, { timeout: 60_000, interval: 200 }).toBe(60);
  await expect.poll(async () => (await look()) && results.length, soon).toBe(60);
  expect(new Set(results).size).toBe(60);
  // Whoever looks for the first time after the end gets all of them too.
  const late = new Map<string, number>();
  let count = 0;
  for (let page = 1; page > 0; count += page) page = (await handle.progress(late)).results.length;
  expect(count).toBe(60);
  expect(await handle.progress()).toMatchObject({ failed: 60, results: [] });
});

test('slices share one budget, and spend all of it', async () => {
  place.trial.ms = () => 20;
  place.trial.summary = { verdict: 'failed', ms: 20, usd: 2, worker: 'test' };
  const outcome = await place.run('rich', {
    trials: 100,
    slice: 10,
    window: 5,
    budget: { usd: 71 },
    trialBudget: { usd: 3 },
  });
  // After 35 trials one dollar is left.
  expect(outcome).toMatchObject({ scheduled: 35, failed: 35, outOfBudget: true, spent: { usd: 70 } });
  expect(place.counts.most).toBeLessThanOrEqual(5);
  // 4 of 10: the rest is not started for nothing, but one slice is always there in advance.
  expect((await statusesOf("ParentWorkflowId = 'rich'")).length).toBeLessThanOrEqual(5);
});

test('a pause and a cancellation reach all slices', async () => {
  place.trial.ms = () => 100;
  place.trial.summary = { verdict: 'passed', ms: 100, worker: 'test' };
  const workflow = await place.start('held', { trials: 60, slice: 10 });
  const handle = new BatchHandle(workflow.workflowId, place.client);
  await expect.poll(() => place.counts.ran.length, soon).toBeGreaterThan(12);
  await handle.pause();
  // Trials that end together leave none open for a moment, until the next ones are scheduled.
  const unfinished = async () => {
    const { scheduled, passed } = await handle.progress();
    return scheduled - passed;
  };
  await expect.poll(unfinished, soon).toBe(0);
  expect((await handle.standing()).open).toEqual([]);
  const { scheduled, isPaused } = await handle.progress();
  expect({ ran: place.counts.ran.length, isPaused }).toEqual({ ran: scheduled, isPaused: true });
  await handle.unpause();
  await expect.poll(() => place.counts.ran.length, soon).toBeGreaterThan(scheduled + 12);
  await handle.cancel();
  await expect(workflow.result()).rejects.toThrow();
  expect((await workflow.describe()).status.name).toBe('CANCELLED');
  const slices = await statusesOf("ParentWorkflowId = 'held'");
  expect(slices.filter((status) => status === 'CANCELLED').length).toBeGreaterThan(0);
  expect(slices.filter((status) => status === 'RUNNING')).toEqual([]);
});

test('when somebody ends the workflow of a batch by force, its slices end as canceled', async () => {
  place.trial.ms = () => 100;
  const workflow = await place.start('forced', { trials: 60, slice: 10 });
  await expect.poll(() => place.counts.ran.length, soon).toBeGreaterThan(12);
  await workflow.terminate();
  const open = () => statusesOf("ParentWorkflowId = 'forced' AND ExecutionStatus = 'Running'");
  await expect.poll(open, soon).toEqual([]);
  expect(place.counts.ran.length).toBeLessThan(60);
});

test('a large window is divided among slices, which work through the list together', async () => {
  // The first trials end together, once the window had the time to fill up even on a busy machine.
  const full = performance.now() + 5_000;
  place.trial.ms = () => Math.max(300, full - performance.now());
  const workflow = await place.start('wide', { trials: 120, slice: 20, window: 12, lane: 4 });
  const handle = new BatchHandle(workflow.workflowId, place.client);
  // The trials of all slices, by task queue.
  const queues = async () => (await handle.progress()).queues;
  await expect.poll(queues, soon).toEqual([{ queue: 'offsite', trials: 12 }]);
  const outcome = await workflow.result();
  expect((await handle.progress()).queues).toEqual([]);
  expect(outcome).toMatchObject({ scheduled: 120, passed: 120, lost: 0 });
  expect(new Set(place.counts.ran).size).toBe(120);
  expect(place.counts.most).toBe(12);
  const half = positions().slice(0, 45);
  expect(half.filter((position) => position < 60).length).toBe(45);
  expect(await statusesOf("ParentWorkflowId = 'wide'")).toHaveLength(6);
  // A slice is not smaller than what is scheduled at a time.
  expect(await place.run('tiny', { trials: 40, slice: 1, window: 10 })).toMatchObject({ passed: 40 });
  expect(await statusesOf("ParentWorkflowId = 'tiny'")).toHaveLength(2);
});

const recorded = ['batch', 'batch/slice-1', 'batch/slice-2', 'batch/slice-3'];

test('the workflows do the same again when their histories are replayed', async () => {
  place.trial.summary = { verdict: 'passed', ms: 50, worker: 'test' };
  place.trial.ms = (position) => 20 + (position % 7) * 10;
  const spending = { budget: { usd: 500 }, trialBudget: { usd: 3 } };
  await place.run('batch', { trials: 12, slice: 4, window: 2, ...spending });
  const bundle = { codePath: await workflowBundle() };
  for (const id of recorded) {
    const history = await place.client.workflow.getHandle(id).fetchHistory();
    await Worker.runReplayHistory({ workflowBundle: bundle }, history, id);
    if (process.env.OFFSITE_RECORD_HISTORIES) writeHistory(id, history);
  }
});

test('workflows that an earlier version began can go on', async () => {
  const bundle = { codePath: await workflowBundle() };
  for (const id of recorded) {
    await Worker.runReplayHistory({ workflowBundle: bundle }, readHistory(id), id);
  }
});
