import { statSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runningWorkflows } from '../../src/fleet/batch-handle.ts';
import { workflowBundle } from '../../src/fleet/workflow-bundle.ts';
import { openWorkflows, type WorkflowPlace } from './workflow-place.ts';

let place: WorkflowPlace;
beforeAll(async () => {
  place = await openWorkflows();
});
afterAll(() => place[Symbol.asyncDispose]());

test('a batch runs each trial once, never more than its window at a time', async () => {
  place.trial.summary = { verdict: 'passed', ms: 50, worker: 'test' };
  const outcome = await place.run('whole', {});
  expect(outcome).toMatchObject({ scheduled: 25, passed: 25, lost: 0, outOfBudget: false });
  expect(new Set(place.counts.ran).size).toBe(25);
  expect(place.counts.ran.length).toBe(25);
  expect(place.counts.most).toBe(4);
});

test('a batch never spends more than its budget, because it reserves what its trials may spend', async () => {
  place.trial.summary = { verdict: 'failed', ms: 50, usd: 2, tokens: 100, worker: 'test' };
  const outcome = await place.run('rich', { budget: { usd: 11 }, trialBudget: { usd: 3 } });
  // After five trials one dollar is left, and the next may spend three.
  expect(outcome).toMatchObject({ scheduled: 5, failed: 5, outOfBudget: true, spent: { usd: 10 } });
  expect(place.counts.most).toBeLessThanOrEqual(3);
});

test('without a limit for a trial, a batch stops when its budget is spent', async () => {
  place.trial.summary = { verdict: 'void', cause: 'model', ms: 50, usd: 2, worker: 'test' };
  const outcome = await place.run('poor', { budget: { usd: 4 }, window: 1 });
  expect(outcome).toMatchObject({ scheduled: 2, void: 2, outOfBudget: true });
});

test('workflows of another fleet in the namespace do not count to those that run', async () => {
  for (const fleet of ['one', 'other'])
    await place.client.workflow.start('offsiteFoundTrial', {
      workflowId: `${fleet}/found`,
      taskQueue: `${fleet}/1.1`,
    });
  const listed = async (queue?: string) => {
    const found = await Array.fromAsync(runningWorkflows(place.client, 'offsiteFoundTrial', queue));
    return found.map(({ workflowId }) => workflowId).toSorted();
  };
  await expect.poll(() => listed(), { timeout: 30_000 }).toEqual(['one/found', 'other/found']);
  expect(await listed('one/1.1')).toEqual(['one/found']);
});

test('the bundle of the workflows is small enough for a package that most use without a fleet', async () => {
  expect(statSync(await workflowBundle()).size).toBeLessThan(300_000);
});
