import { afterAll, beforeAll, expect, test } from 'vitest';
import { completeListings } from '../../src/ledger/listings.ts';
import { newSetId } from '../../src/ledger/sets.ts';
import { fillBatch } from './filled-ledger.ts';
import { type OpenedViewer, openedViewer } from './opened-viewer.ts';

const [startedAt, finishedAt] = [1_000_000, 1_060_000];
const usage = { inputTokens: 1_000, outputTokens: 200, totalTokens: 1_200, cacheReadTokens: 0 };
const connection = { host: 'a.example', port: 443, startedAt, finishedAt, sentBytes: 1, receivedBytes: 2 };

let opened: OpenedViewer;
let set: string;
let batch: number;
let trial: number;
beforeAll(async () => {
  opened = await openedViewer();
  const { ledger } = opened;
  const shared = { service: 'embedded', suite: 'many', file: undefined };
  const plan = await ledger.blobs.putJson('a plan');
  set = ledger.sets.add({ ...shared, id: newSetId(), plans: [plan, plan] }).id;
  const [part] = ledger.sets.parts(ledger.sets.find(set)?.key ?? 0);
  const { key: start } = ledger.starts.add({ ...shared, plan, lock: 'batch-1', part: part?.key });
  batch = await fillBatch(ledger, {
    id: 'batch_of_a_set',
    start,
    suite: 'many',
    cases: ['one'],
    variants: ['a'],
    found: () => ({
      verdict: 'failed',
      subject: {
        caseName: 'one',
        ordinal: 0,
        model: 'm',
        harness: 'codex',
        image: 'i',
        network: 'allowlist',
        prompt: 'p',
        hosts: ['a.example'],
        testsHosts: ['b.example'],
      },
      models: {
        usage: [],
        exchanges: [],
        modelMs: 0,
        agent: { acted: true },
        connections: [connection, { ...connection, failure: 'refused' }],
      },
      testsConnections: [],
      steps: [
        { name: 'write', startedAt, finishedAt, verdict: 'passed', rewards: { reward: 1 } },
        { name: 'extend', startedAt, finishedAt, verdict: 'passed', rewards: { reward: 0 } },
        { name: 'last' },
      ],
      judgments: [
        { name: 'write: reward', score: 1, threshold: 1 },
        { name: 'extend: reward', score: 0 },
      ],
    }),
  });
  const alone = await fillBatch(ledger, {
    id: 'batch_alone',
    suite: 'many',
    cases: ['one'],
    variants: ['a'],
    found: () => ({
      verdict: 'passed',
      models: {
        exchanges: [],
        connections: [],
        modelMs: 0,
        agent: { acted: true },
        usage: [{ role: 'agent', model: 'm', requests: 1, usage: { ...usage, costUsd: 0.0123 } }],
      },
    }),
  });
  for (const key of [batch, alone]) completeListings(ledger, key);
  [trial = 0] = ledger.queue.ofBatch(batch).map(({ key }) => key);
});
afterAll(() => opened[Symbol.asyncDispose]());

test('the list says which batch of which set each is, and finds them by the set', async () => {
  const page = await opened.open('/');
  const rows = page.getByRole('table', { name: 'Batches' }).getByRole('row');
  await expect.poll(() => rows.count()).toBe(3);
  expect(await rows.nth(2).textContent()).toContain(`1 of 2 of ${set}`);
  await page.keyboard.press('/');
  await page.keyboard.type(set);
  await page.getByTitle('batch_alone').waitFor({ state: 'detached' });
  await rows.nth(1).getByRole('link').click();
  expect(await page.getByRole('link', { name: `1 of 2 of ${set}` }).getAttribute('href')).toContain(set);
  opened.calm();
});

test('tokens and cost are in the list and in comparisons where a model was used, and only there', async () => {
  const page = await opened.open('/');
  const rows = page.getByRole('table', { name: 'Batches' }).getByRole('row');
  await expect.poll(() => rows.count()).toBe(3);
  const cells = (row: number) => rows.nth(row).getByRole('cell');
  expect([await cells(1).nth(5).textContent(), await cells(1).nth(6).textContent()]).toEqual([
    '1.2k',
    '$0.0123',
  ]);
  expect([await cells(2).nth(5).textContent(), await cells(2).nth(6).textContent()]).toEqual(['', '']);
  await page.evaluate(`location.hash = '/compare?left=${batch}&right=${batch}'`);
  const means = page.getByRole('region', { name: 'Means' });
  await means.getByText('Time').waitFor();
  expect(await means.getByRole('rowheader').allTextContents()).toEqual(['Pass rate', 'Time']);
  opened.calm();
});

test('a trial shows what its steps had to reach, and the hosts that it could', async () => {
  const page = await opened.open(`/trial/${trial}`);
  await page.getByRole('tab', { name: 'Checks' }).click();
  const steps = page.locator('table.steps tbody tr');
  await expect.poll(() => steps.count()).toBe(3);
  expect(await steps.nth(0).textContent()).toContain('passedreward 1, of at least 1');
  expect(await steps.nth(1).textContent()).toContain('nothing to reachreward 0, no threshold');
  expect(await steps.nth(2).textContent()).toContain('not run');
  await page.getByRole('tab', { name: 'Task' }).click();
  await page.getByText('a.example (2 connections, 1 failed)').waitFor();
  await page.getByText('b.example (0 connections)').waitFor();
  opened.calm();
});
