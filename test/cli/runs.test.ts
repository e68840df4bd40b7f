import { afterAll, beforeAll, expect, test } from 'vitest';
import type { BatchSummary } from '../../src/cli/output/summary.ts';
import { offsiteHere as offsite, startInTerminal } from './offsite.ts';
import { openPlace, type Place } from './place.ts';

let place: Place;
let batch: BatchSummary;
let table: string;
let printed: string;

beforeAll(async () => {
  place = openPlace();
  const unpriced = { wire: 'openai-chat', baseUrl: 'http://127.0.0.1:9/v1', model: 'm' };
  const suite = place.suite({
    trials: 2,
    run: 'sleep 3; eval "$act"',
    variants: ['a-model-of-ours-with-a-long-name', 'other'].map((model) => ({
      name: `${model}-at-work`,
      model,
      harness: 'command',
      profile: 'worker',
    })),
    config: {
      models: {
        'a-model-of-ours-with-a-long-name': unpriced,
        other: unpriced,
        priced: {
          wire: 'openai-chat',
          baseUrl: 'http://127.0.0.1:9/v1',
          model: 'm',
          prices: { date: '2026-01-15', input: 3, output: 15 },
        },
      },
    },
    cases: [{ id: 'a', variables: { act: 'true' }, verify: 'true' }],
  });
  const ended = await offsite(place, ['run', suite, '-c', '2', '--json']);
  printed = ended.stderr;
  batch = JSON.parse(ended.stdout);
  table = (await offsite(place, ['show', batch.batchId])).stdout;
});
afterAll(() => place?.[Symbol.dispose]());

test('runs are listed by the names of their variants and the suite', async () => {
  const { stdout, exitCode } = await offsite(place, ['service', 'runs', 'a']);
  expect(exitCode).toBe(0);
  const [titles, ...rows] = stdout.trim().split('\n');
  expect(titles?.split(/\s{2,}/)).toEqual(['when', 'suite', 'variant', 'passed', 'rate', 'batch', 'run']);
  expect(rows[0]).toMatch(/small +(a-model-of-ours-with-a-long-name|other)-at-work +2 of 2 +100 % +batch_/);
  const { runs } = JSON.parse((await offsite(place, ['service', 'runs', 'a', '--json'])).stdout);
  const names = runs.map(({ variantName }: { variantName: string }) => variantName);
  expect(names.toSorted()).toEqual(['a-model-of-ours-with-a-long-name-at-work', 'other-at-work']);
});

test('in a terminal the table is as wide as the terminal, and `show` takes its ids', async () => {
  const shown = startInTerminal(place, ['service', 'runs', 'a'], { columns: 80 });
  await shown.ended;
  const lines = await shown.screen.lines();
  const row = lines.find((line) => line.includes('of-ours') || line.includes('2 of 2')) ?? '';
  expect(row.length).toBeLessThanOrEqual(80);
  const [batchId = '', run = ''] = row
    .trim()
    .split(/\s{2,}/)
    .slice(-2);
  expect(batch.batchId).toContain(batchId);
  const { exitCode, stderr } = await offsite(place, ['show', run]);
  expect(exitCode, stderr).toBe(0);
});

test('a run says once which limits it has because models have prices', () => {
  const limits = 'limited by default: 10 USD for the models of a trial (budgets.trial.usd) and 200 USD';
  expect(printed.split(limits)).toHaveLength(2);
});

test("a batch's time is what a person waited, not the sum over its trials", () => {
  const { durationMs, elapsedMs = 0 } = batch;
  expect(elapsedMs).toBeGreaterThan(6_000);
  expect(elapsedMs).toBeLessThan(durationMs);
  const seconds = Math.floor(elapsedMs / 1000);
  const all = table.split('\n').find((line) => line.startsWith('all ')) ?? '';
  expect(all).toMatch(new RegExp(`\\b(${seconds}|${seconds + 1})(\\.\\d)? s`));
});

test('a run that was queued again has the name of its variant', async () => {
  const rerun = await offsite(place, ['service', 'rerun', batch.batchId, 'a/other-at-work']);
  expect(rerun.exitCode, rerun.stderr).toBe(0);
  const { runs } = JSON.parse((await offsite(place, ['service', 'runs', 'a', '--json'])).stdout);
  const [newest] = runs;
  expect(newest).toMatchObject({ variantName: 'other-at-work', distribution: { scored: 0 } });
  expect(runs).toHaveLength(3);
});
