import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Clock, systemClock } from '../../src/clock.ts';
import type { FoundRun } from '../../src/ledger/claims.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { pruneLedger } from '../../src/ledger/prune.ts';

const clock: Clock = { ...systemClock, now: () => 1_000 };
const service = 'https://evals.example';
const report = { caseName: 'A', ordinal: 0, taskIndex: 0, events: [], outcome: { passed: true } };

let folder: string;
let ledger: Ledger;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'offsite-claims-'));
  ledger = new Ledger(folder, clock);
});
afterEach(() => {
  ledger[Symbol.dispose]();
  rmSync(folder, { recursive: true });
});

function found(id: string, more: Partial<FoundRun> = {}): FoundRun {
  return {
    service,
    batchId: 'batch_1',
    suite: 'Suite',
    id,
    caseId: 'a',
    caseName: 'A',
    variant: 'v_1',
    memory: { variant: { id: 'v_1', model: 'm' } },
    setup: undefined,
    ordinals: [0, 1],
    ...more,
  };
}

function next(
  limit = 100,
  { except = [], exceptRuns = [] }: { except?: number[]; exceptRuns?: number[] } = {},
) {
  return ledger.claims.next(service, { except, exceptRuns, limit });
}

/** An own batch with one run of two queued trials. */
function planned(lock: string) {
  const run = { id: 'run_own', taskIndex: 0, caseId: 'a', caseName: 'A', variant: 'v', memory: {} };
  const { key } = ledger.batches.add({
    service,
    id: `batch_${lock}`,
    suite: 'Suite',
    file: 'f',
    lock,
    runs: [run],
  });
  for (const { key } of ledger.batches.runs(ledger.batches.find(`batch_${lock}`)[0]?.key ?? 0)) {
    ledger.batches.queueTrials([{ run: key, setup: undefined, ordinals: [0, 1] }]);
  }
  return key;
}

test('a run is claimed once, and its trials wait in the order in which they were found', () => {
  expect(ledger.claims.claim(found('run_1'))).toBe(true);
  expect(ledger.claims.claim(found('run_1'))).toBe(false);
  ledger.claims.claim(found('run_2', { batchId: 'batch_2', ordinals: [3] }));
  expect(next().map(({ runId, ordinal }) => [runId, ordinal])).toEqual([
    ['run_1', 0],
    ['run_1', 1],
    ['run_2', 3],
  ]);
  expect(next(2)).toHaveLength(2);
  expect(ledger.claims.count(service)).toBe(3);
});

test('what another process has in the ledger is never claimed', () => {
  planned('batch-of-a-run-command');
  expect(ledger.claims.claim(found('run_own', { batchId: 'batch_batch-of-a-run-command' }))).toBe(false);
  expect(next()).toEqual([]);
});

test("batches that the daemon started are its own, and other processes' are not", () => {
  planned('daemon');
  planned('batch-of-a-run-command');
  expect(next().map(({ batchId, origin }) => [batchId, origin])).toEqual([
    ['batch_daemon', 'started'],
    ['batch_daemon', 'started'],
  ]);
});

test('a claimed run is no batch that could be resumed without the daemon', () => {
  ledger.claims.claim(found('run_1'));
  expect(ledger.batches.open()).toEqual([]);
});

test('a run that was added to a batch of ours is claimed beside what was planned', () => {
  const key = planned('daemon');
  expect(ledger.claims.claim(found('run_cell', { batchId: 'batch_daemon', ordinals: [0] }))).toBe(true);
  expect(ledger.batches.runs(key).map(({ id }) => id)).toEqual(['run_own']);
  expect(ledger.trials.ofBatch(key)).toHaveLength(2);
  expect(next().map(({ runId, origin }) => [runId, origin])).toEqual([
    ['run_own', 'started'],
    ['run_own', 'started'],
    ['run_cell', 'found'],
  ]);
});

test('trials and runs that are in hand or wait are left out', () => {
  ledger.claims.claim(found('run_1'));
  ledger.claims.claim(found('run_2'));
  const [first, , third] = next();
  const rest = next(100, { except: [first?.key ?? 0], exceptRuns: [third?.run ?? 0] });
  expect(rest.map(({ runId, ordinal }) => [runId, ordinal])).toEqual([['run_1', 1]]);
});

test('half-run trials of a daemon that died are queued again, with their attempts kept', () => {
  ledger.claims.claim(found('run_1'));
  const [first] = next();
  ledger.trials.beginAttempt(first?.key ?? 0);
  expect(next()).toHaveLength(1);
  expect(ledger.claims.interrupt(service)).toBe(1);
  expect(next()).toHaveLength(2);
  expect(ledger.trials.beginAttempt(first?.key ?? 0).number).toBe(2);
});

test('a withdrawn trial is not run, its run can end without it, and pruning takes all of it', async () => {
  ledger.claims.claim(found('run_1'));
  const [first, second] = next();
  const attempt = ledger.trials.beginAttempt(first?.key ?? 0);
  await ledger.trials.finish(attempt, { verdict: 'passed', result: {}, report });
  expect(ledger.batches.find('batch_1')[0]?.state).toBe('open');
  expect(ledger.claims.openTrials(service, 'run_1').map(({ ordinal }) => ordinal)).toEqual([1]);
  ledger.claims.withdraw([second?.key ?? 0], 'canceled');
  expect(next()).toEqual([]);
  expect(ledger.claims.openTrials(service, 'run_1')).toEqual([]);
  expect(ledger.batches.find('batch_1')[0]?.state).toBe('finished');

  ledger.outbox.delivered(first?.key ?? 0);
  const signal = new AbortController().signal;
  const pruned = await pruneLedger(ledger, { before: 2_000, now: 2_000, dryRun: false }, signal);
  expect(pruned).toMatchObject({ batches: 1, trials: 2 });
  expect(ledger.batches.find('batch_1')).toEqual([]);
});

test('what stands in the outbox is told with the age of its oldest', async () => {
  ledger.claims.claim(found('run_1'));
  for (const { key } of next()) {
    const attempt = ledger.trials.beginAttempt(key);
    await ledger.trials.finish(attempt, { verdict: 'passed', result: {}, report });
  }
  expect(ledger.outbox.standing(service)).toEqual({ queued: 2, parked: 0, oldestAt: 1_000 });
  for (const { trial } of ledger.outbox.pending()) ledger.outbox.parked(trial, 'no');
  expect(ledger.outbox.standing(service)).toEqual({ queued: 0, parked: 2, oldestAt: undefined });
});
