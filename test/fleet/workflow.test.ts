import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, Connection } from '@temporalio/client';
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  type BatchInput,
  type BatchOutcome,
  batchWorkflow,
  type FleetActivities,
  type TrialSummary,
} from '../../src/fleet/workflow/messages.ts';
import { workflowBundle } from '../../src/fleet/workflow-bundle.ts';
import { openTemporal, type TemporalServer } from './temporal-server.ts';

/** The workflows on a real server, with activities that only count. */

const folder = mkdtempSync(join(tmpdir(), 'offsite-fleet-'));
let server: TemporalServer;
let client: Client;
const opened = new AsyncDisposableStack();
const counts = { now: 0, most: 0, ran: [] as string[] };
let summary: TrialSummary;

const activities: FleetActivities = {
  async offsiteTrial({ run, ordinal }) {
    counts.ran.push(`${run}/${ordinal}`);
    counts.most = Math.max(counts.most, ++counts.now);
    await sleep(50);
    counts.now--;
    return summary;
  },
  offsiteLook: () => Promise.reject(new Error('nothing polls')),
  offsiteTrialPage: async ({ from, limit, taskQueue }) =>
    Array.from({ length: limit }, (_, index) => ({ run: 'run', ordinal: from + index, queue: taskQueue })),
};

beforeAll(async () => {
  Runtime.install({ logger: new DefaultLogger('ERROR') });
  opened.defer(() => rmSync(folder, { recursive: true, force: true }));
  server = opened.use(await openTemporal(folder));
  const connection = await Connection.connect({ address: server.address });
  opened.defer(() => connection.close());
  client = new Client({ connection });
  const native = await NativeConnection.connect({ address: server.address });
  opened.defer(() => native.close());
  const bundle = { codePath: await workflowBundle() };
  const parts = { connection: native, taskQueue: 'offsite', workflowBundle: bundle, activities };
  const worker = await Worker.create(parts);
  const running = worker.run();
  opened.defer(async () => {
    worker.shutdown();
    await running;
  });
}, 120_000);

afterAll(() => opened.disposeAsync());

async function run(batch: string, more: Partial<BatchInput>): Promise<BatchOutcome> {
  Object.assign(counts, { now: 0, most: 0, ran: [] });
  const input: BatchInput = {
    ...{ batch, document: '', trials: 25, taskQueue: 'offsite', pool: 'default', heartbeatMs: 60_000 },
    ...{ window: 4, continueAfter: 1_000, priority: 3, budget: {}, trialBudget: {}, ...more },
  };
  const options = { workflowId: batch, taskQueue: 'offsite', args: [input] };
  return (await client.workflow.execute(batchWorkflow, options)) as BatchOutcome;
}

test('a long batch continues as new, and runs each trial once, never more than its window at a time', async () => {
  summary = { verdict: 'passed', ms: 50, worker: 'test' };
  const outcome = await run('long', { continueAfter: 10 });
  expect(outcome).toMatchObject({ scheduled: 25, passed: 25, lost: 0, outOfBudget: false });
  expect(new Set(counts.ran).size).toBe(25);
  expect(counts.ran.length).toBe(25);
  expect(counts.most).toBe(4);
  const runs = await Array.fromAsync(client.workflow.list({ query: "WorkflowId = 'long'" }));
  const states = runs.map(({ status }) => status.name).toSorted();
  expect(states).toEqual(['COMPLETED', 'CONTINUED_AS_NEW', 'CONTINUED_AS_NEW']);
}, 120_000);

test('a batch never spends more than its budget, because it reserves what its trials may spend', async () => {
  summary = { verdict: 'failed', ms: 50, usd: 2, tokens: 100, worker: 'test' };
  const outcome = await run('rich', { budget: { usd: 11 }, trialBudget: { usd: 3 } });
  // After five trials one dollar is left, and the next may spend three.
  expect(outcome).toMatchObject({ scheduled: 5, failed: 5, outOfBudget: true, spent: { usd: 10 } });
  expect(counts.most).toBeLessThanOrEqual(3);
}, 120_000);

test('without a limit for a trial, a batch stops when its budget is spent', async () => {
  summary = { verdict: 'void', cause: 'model', ms: 50, usd: 2, worker: 'test' };
  const outcome = await run('poor', { budget: { usd: 4 }, window: 1 });
  expect(outcome).toMatchObject({ scheduled: 2, void: 2, outOfBudget: true });
}, 120_000);

test('the bundle of the workflows is small enough for a package that most use without a fleet', async () => {
  expect(statSync(await workflowBundle()).size).toBeLessThan(300_000);
});
