import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { openDatabase } from '../../src/ledger/database.ts';
import type { FoundRun } from '../../src/ledger/found-runs.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { migrations } from '../../src/ledger/migrations.ts';
import { pruneLedger } from '../../src/ledger/prune.ts';
import { daemonLock, type ExcludedTrials, variantOf } from '../../src/ledger/queue.ts';
import { folder } from '../each-folder.ts';
import { eachLedger, ledger } from './each-ledger.ts';
import { report } from './queue-trial.ts';

const clock: Clock = { ...systemClock, now: () => 1_000 };
const service = 'https://evals.example';
const scope = { service, lock: daemonLock };

eachLedger({ clock });

function found(id: string, more: Partial<FoundRun> = {}): FoundRun {
  return {
    service,
    batchId: 'batch_1',
    suite: 'Suite',
    id,
    caseId: 'a',
    caseName: 'A',
    variant: 'v_1',
    details: { variant: { id: 'v_1', model: 'm' } },
    setup: undefined,
    ordinals: [0, 1],
    ...more,
  };
}

function next(limit = 100, except: ExcludedTrials = {}) {
  return ledger.queue.next(scope, limit, except);
}

/** An own batch with one run of two queued trials. */
function planned(lock: string) {
  const run = { id: 'run_own', taskIndex: 0, caseId: 'a', caseName: 'A', variant: 'v' };
  const { key } = ledger.batches.add({
    service,
    id: `batch_${lock}`,
    suite: 'Suite',
    file: 'f',
    lock,
    runs: [run],
  });
  for (const { key } of ledger.batches.runs(ledger.batches.find(`batch_${lock}`)[0]?.key ?? 0)) {
    ledger.queue.add([{ key, setup: undefined, ordinals: [0, 1] }]);
  }
  return key;
}

test('a run is claimed once, and its trials wait in the order in which they were found', () => {
  expect(ledger.foundRuns.adopt(found('run_1'))).toBe(true);
  expect(ledger.foundRuns.adopt(found('run_1'))).toBe(false);
  ledger.foundRuns.adopt(found('run_2', { batchId: 'batch_2', ordinals: [3] }));
  expect(next().map(({ runId, ordinal }) => [runId, ordinal])).toEqual([
    ['run_1', 0],
    ['run_1', 1],
    ['run_2', 3],
  ]);
  expect(next(2)).toHaveLength(2);
  expect(ledger.queue.count(scope)).toBe(3);
});

test('what another process has in the ledger is never claimed', () => {
  planned('batch-of-a-run-command');
  expect(ledger.foundRuns.adopt(found('run_own', { batchId: 'batch_batch-of-a-run-command' }))).toBe(false);
  expect(next()).toEqual([]);
});

test('a run that is pulled again keeps the trials that it has', () => {
  const [run] = ledger.batches.runs(planned('again'));
  ledger.queue.add([{ key: run?.key ?? 0, setup: undefined, ordinals: [0, 1, 2] }]);
  const queued = ledger.queue.next({ service, lock: 'again' }, 100, {});
  expect(queued.map(({ ordinal }) => ordinal)).toEqual([0, 1, 2]);
});

test("batches that the daemon started are its own, and other processes' are not", () => {
  planned('daemon');
  planned('batch-of-a-run-command');
  expect(next().map(({ batchId, origin }) => [batchId, origin])).toEqual([
    ['batch_daemon', 'planned'],
    ['batch_daemon', 'planned'],
  ]);
});

test('a claimed run is no batch that could be resumed without the daemon', () => {
  ledger.foundRuns.adopt(found('run_1'));
  expect(ledger.batches.open()).toEqual([]);
});

test('a run that was added to a batch of ours is claimed beside what was planned', () => {
  const key = planned('daemon');
  expect(ledger.foundRuns.adopt(found('run_cell', { batchId: 'batch_daemon', ordinals: [0] }))).toBe(true);
  expect(ledger.batches.runs(key).map(({ id }) => id)).toEqual(['run_own']);
  expect(ledger.queue.ofBatch(key)).toHaveLength(2);
  expect(next().map(({ runId, origin }) => [runId, origin])).toEqual([
    ['run_own', 'planned'],
    ['run_own', 'planned'],
    ['run_cell', 'found'],
  ]);
});

test('trials and runs that are in hand or wait are left out', () => {
  ledger.foundRuns.adopt(found('run_1'));
  ledger.foundRuns.adopt(found('run_2'));
  const [first, , third] = next();
  const rest = next(100, { trials: [first?.key ?? 0], runs: [third?.run ?? 0] });
  expect(rest.map(({ runId, ordinal }) => [runId, ordinal])).toEqual([['run_1', 1]]);
});

test('half-run trials of a daemon that died are queued again, with their attempts kept', () => {
  ledger.foundRuns.adopt(found('run_1'));
  const [first] = next();
  ledger.trials.beginAttempt(first?.key ?? 0);
  expect(next()).toHaveLength(1);
  expect(ledger.queue.interrupt(scope)).toBe(1);
  expect(next()).toHaveLength(2);
  expect(ledger.trials.beginAttempt(first?.key ?? 0).number).toBe(2);
});

test('a withdrawn trial is not run, its run can end without it, and pruning takes all of it', async () => {
  ledger.foundRuns.adopt(found('run_1'));
  const [first, second] = next();
  const attempt = ledger.trials.beginAttempt(first?.key ?? 0);
  await ledger.trials.finish(attempt, { verdict: 'passed', result: {}, report });
  expect(ledger.batches.find('batch_1')[0]?.state).toBe('open');
  expect(ledger.queue.openTrials(scope, 'run_1').map(({ ordinal }) => ordinal)).toEqual([1]);
  ledger.queue.withdraw([second?.key ?? 0], 'canceled');
  expect(next()).toEqual([]);
  expect(ledger.queue.openTrials(scope, 'run_1')).toEqual([]);
  expect(ledger.batches.find('batch_1')[0]?.state).toBe('finished');

  ledger.outbox.become(first?.key ?? 0, 'delivered');
  const signal = new AbortController().signal;
  const pruned = await pruneLedger(ledger, { before: 2_000, now: 2_000, dryRun: false }, signal);
  expect(pruned).toMatchObject({ batches: 1, trials: 2 });
  expect(ledger.batches.find('batch_1')).toEqual([]);
});

test('what stands in the outbox is told with the age of its oldest', async () => {
  ledger.foundRuns.adopt(found('run_1'));
  for (const { key } of next()) {
    const attempt = ledger.trials.beginAttempt(key);
    await ledger.trials.finish(attempt, { verdict: 'passed', result: {}, report });
  }
  expect(ledger.outbox.standing(service)).toMatchObject({ queued: 2, sent: 0, parked: 0, oldestAt: 1_000 });
  const [{ key: trial = 0 } = {}] = ledger.outbox.pending();
  ledger.outbox.become(trial, 'sent');
  expect(ledger.outbox.standing(service)).toMatchObject({ queued: 1, sent: 1, parked: 0, oldestAt: 1_000 });
  for (const { key: trial } of ledger.outbox.pending())
    ledger.outbox.become(trial, 'parked', { answer: 'no', version: '1.0.0' });
  expect(ledger.outbox.standing(service)).toMatchObject({
    queued: 0,
    sent: 0,
    parked: 2,
    oldestAt: undefined,
  });
});

test('whoever resumes a batch leaves the runs alone that the daemon found in it', () => {
  const batch = planned('batch-of-a-run-command');
  const resumed = { service, lock: 'batch-of-a-run-command', batch, origin: 'planned' } as const;
  ledger.foundRuns.adopt(found('run_cell', { batchId: 'batch_batch-of-a-run-command', ordinals: [0] }));
  const [cell] = next();
  ledger.trials.beginAttempt(cell?.key ?? 0);
  expect(ledger.queue.interrupt(resumed)).toBe(0);
  expect(ledger.queue.next(resumed, 100).map(({ runId }) => runId)).toEqual(['run_own', 'run_own']);
  expect(ledger.queue.interrupt(scope)).toBe(1);
});

test('trials of a variant that is left out wait, however many there are', () => {
  ledger.foundRuns.adopt(found('run_1', { ordinals: [0, 1, 2] }));
  ledger.foundRuns.adopt(found('run_2', { variant: 'v_2', ordinals: [0] }));
  const [first] = next();
  const variants = first ? [variantOf(first)] : [];
  expect(next(2, { variants }).map(({ runId }) => runId)).toEqual(['run_2']);
});

test('a data folder of an Offsite before this one keeps what was found and what was withdrawn', () => {
  const old = join(folder, 'old');
  const database = openDatabase(join(old, 'ledger.db'), migrations.slice(0, 4));
  database.exec(`
    INSERT INTO batches (key, service, id, suite, started_at, lock) VALUES
      (1, '${service}', 'batch_own', 'S', 1, 'daemon'), (2, '${service}', 'batch_other', 'S', 1, NULL);
    INSERT INTO runs (key, batch, id, task_index, case_id, case_name, variant, variant_index, memory) VALUES
      (1, 1, 'run_own', 0, 'a', 'A', 'worker', 0, '{}'), (2, 2, 'run_found', 0, 'a', 'A', 'v_1', NULL, '{}');
    INSERT INTO claims (run) VALUES (2);
    INSERT INTO trials (key, run, ordinal, state) VALUES
      (1, 1, 0, 'queued'), (2, 1, 1, 'queued'), (3, 2, 0, 'queued'), (4, 2, 1, 'running');
    INSERT INTO attempts (key, trial, number, started_at) VALUES (1, 4, 1, 1);
    INSERT INTO withdrawals (trial, why) VALUES (2, 'canceled');`);
  database.close();
  using migrated = new Ledger(old, clock);
  const waiting = () => migrated.queue.next(scope, 100).map(({ key, origin }) => [key, origin]);
  expect(waiting()).toEqual([
    [1, 'planned'],
    [3, 'found'],
  ]);
  expect(migrated.queue.interrupt(scope)).toBe(1);
  expect(waiting()).toContainEqual([4, 'found']);
  expect(migrated.batches.open().map(({ id }) => id)).toEqual(['batch_own']);
  expect(migrated.queue.ofBatch(1).map(({ key }) => key)).toEqual([1]);
});
