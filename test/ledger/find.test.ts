import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { findBatch, lastBatch, listBatches, listTrials } from '../../src/ledger/find.ts';
import { storeListing } from '../../src/ledger/listings.ts';
import { queueTrials, reopen, takeBack } from '../../src/ledger/trial-states.ts';
import type { Verdict } from '../../src/ledger/trials.ts';
import { batchMarks } from '../../src/record/batch-marks.ts';
import { folder } from '../each-folder.ts';
import { eachLedger, ledger } from './each-ledger.ts';
import { report } from './queue-trial.ts';

let now = 1_000;
eachLedger({ clock: { ...systemClock, now: () => now++ } });

/** A batch with a run for each list of verdicts; `undefined` is a trial without a result. */
async function batch(id: string, runs: (Verdict | undefined)[][] = [], service = 'embedded') {
  const { key } = ledger.batches.add({
    service,
    id,
    suite: 'Suite',
    file: undefined,
    runs: runs.map((_, index) => ({
      id: `run_${index}`,
      taskIndex: index,
      caseId: `case-${index}`,
      caseName: `Case ${index}`,
      variant: 'v',
      details: {},
    })),
  });
  for (const [index, run] of ledger.batches.runs(key).entries()) {
    const verdicts = runs[index] ?? [];
    ledger.queue.add([{ key: run.key, setup: undefined, ordinals: [...verdicts.keys()] }]);
    for (const trial of ledger.queue.ofBatch(key).filter((trial) => trial.run === run.key)) {
      const verdict = verdicts[trial.ordinal];
      if (verdict === undefined) continue;
      const attempt = ledger.trials.beginAttempt(trial.key);
      await ledger.trials.finish(attempt, { verdict, result: { verdict }, report });
    }
  }
  return key;
}

const idOf = (reference: string) => findBatch(ledger.records, reference).id;

test('a batch is found by its id and by any beginning that only it has', async () => {
  await batch('batch_abc1');
  await batch('batch_abd2');
  expect(idOf('batch_abc1')).toBe('batch_abc1');
  expect(idOf('batch_abd')).toBe('batch_abd2');
  expect(idOf('abc')).toBe('batch_abc1');
});

test('a whole id wins over the beginning of a longer one', async () => {
  await batch('batch_a');
  await batch('batch_ab');
  expect(idOf('batch_a')).toBe('batch_a');
  expect(idOf('a')).toBe('batch_a');
});

test('no character of a reference has a meaning of its own, and case counts', async () => {
  await batch('batch_aXc');
  for (const reference of ['a%', 'a_c', 'a*', 'a?c', 'batch_[a]', 'ax', 'batchXa', ''])
    expect(() => idOf(reference), reference).toThrow(expect.objectContaining({ code: 'BATCH_UNKNOWN' }));
});

test('an ambiguous reference is refused with the candidates, newest first', async () => {
  await batch('batch_ab1');
  await batch('batch_ab2');
  await batch('batch_c');
  expect(() => idOf('ab')).toThrow(
    expect.objectContaining({
      code: 'BATCH_AMBIGUOUS',
      message: expect.stringMatching(/^2 batches fit ab:\nbatch_ab2 \(Suite, .*\nbatch_ab1 \(Suite, .*\)$/),
    }),
  );
});

test('an error about very many candidates stays short', async () => {
  for (let n = 0; n < 14; n++) await batch(`batch_a${n}`);
  expect(() => idOf('batch')).toThrow(/\nand 4 more$/);
});

test('the same id at two services is ambiguous', async () => {
  await batch('batch_a', [], 'https://one.example');
  await batch('batch_a', [], 'https://two.example');
  expect(() => idOf('batch_a')).toThrow(/https:\/\/two\.example\)\n.*https:\/\/one\.example\)/);
});

test('the last batch is the one that was started last; an empty ledger says so', async () => {
  expect(() => lastBatch(ledger.records)).toThrow(/has no batch/);
  await batch('batch_z');
  await batch('batch_a');
  expect(lastBatch(ledger.records).id).toBe('batch_a');
});

test('batches are listed newest first, with the number of their trials', async () => {
  await batch('batch_1', [
    ['passed', 'failed'],
    ['void', 'passed', undefined],
  ]);
  await batch('batch_2');
  expect(listBatches(ledger.records)).toMatchObject([
    { id: 'batch_2', passed: 0, failed: 0, void: 0, unfinished: 0 },
    { id: 'batch_1', passed: 2, failed: 1, void: 1, unfinished: 1 },
  ]);
});

test("a batch's trials are listed with their run, verdict and result", async () => {
  const key = await batch('batch_1', [['passed', undefined], ['void']]);
  const trials = listTrials(ledger.records, key);
  expect(trials).toMatchObject([
    { runId: 'run_0', caseId: 'case-0', variant: 'v', ordinal: 0, verdict: 'passed', state: 'finished' },
    { caseId: 'case-0', ordinal: 1, verdict: undefined, result: undefined, state: 'queued' },
    { runId: 'run_1', caseId: 'case-1', caseName: 'Case 1', ordinal: 0, verdict: 'void' },
  ]);
  expect(ledger.blobs.readJson(trials[2]?.result ?? '')).toEqual({ verdict: 'void' });
  const [, withdrawn] = trials;
  ledger.queue.withdraw([withdrawn?.key ?? 0], 'canceled');
  expect(listTrials(ledger.records, key)).toHaveLength(2);
  const [listed, ...others] = listBatches(ledger.records);
  expect([listed, others]).toMatchObject([{ unfinished: 0, canceled: 1 }, []]);
  expect(listed && batchMarks(listed)).toEqual(['1 trial canceled', '2 results not seen at the service']);
});

test('a list shows every later change of a batch that it listed before, as if it had never been listed', async () => {
  const { records, queue, trials } = ledger;
  const key = await batch('batch_1', [['passed', 'failed', undefined], [undefined]]);
  await batch('batch_2', [['passed']]);
  const [passed = 0, failed = 0, open = 0, taken = 0] = listTrials(records, key).map((trial) => trial.key);
  queue.withdraw([open], 'canceled');
  await trials.take(taken, 'failed', {});
  const run = ledger.batches.runs(key)[1]?.key ?? 0;
  const row = { batch: key, id: 'run_9', taskIndex: 9, caseName: 'Case 9', variant: 'v', memory: '{}' };
  const changes: Record<string, () => unknown> = {
    'has figures': () =>
      storeListing(records, passed, {
        listing:
          '{"startedAt":1,"finishedAt":5,"totalTokens":7,"steady":{"of":"c","startedAt":1,"finishedAt":5}}',
        recordBytes: 1,
      }),
    'has another result': () => trials.take(failed, 'void', {}),
    'a report added': () =>
      records.insert('reports', { trial: taken, body: 'a', state: 'superseded', nextAt: 0 }),
    'a report removed': () => records.run('DELETE FROM reports WHERE trial = ?', taken),
    'a trial added': () => records.transaction(() => queueTrials(records, run, [7])),
    'a trial removed': () => records.run('DELETE FROM trials WHERE run = ? AND ordinal = 7', run),
    'a run added': () => records.insert('runs', { ...row, caseId: 'case-9', origin: 'found' }),
    'a run of another case': () => records.run("UPDATE runs SET case_id = 'case-0' WHERE id = 'run_9'"),
    'a run removed': () => records.run("DELETE FROM runs WHERE id = 'run_9'"),
    'open again': () =>
      records.transaction(() => {
        takeBack(records, taken);
        reopen(records, run);
      }),
  };
  for (const [change, make] of Object.entries(changes)) {
    const before = listBatches(records);
    expect(records.get('SELECT count(*) AS count FROM batch_sums'), change).toEqual({ count: 2 });
    await make();
    const listed = listBatches(records);
    expect(listed, change).not.toEqual(before);
    records.run('DELETE FROM batch_sums');
    expect(listed, change).toEqual(listBatches(records));
  }
});

test('batches are listed while another process writes', async () => {
  await batch('batch_1', [['passed']]);
  using other = new DatabaseSync(join(folder, 'ledger.db'));
  other.exec('BEGIN IMMEDIATE');
  const started = performance.now();
  expect(listBatches(ledger.records)).toMatchObject([{ id: 'batch_1', passed: 1 }]);
  expect(performance.now() - started).toBeLessThan(5_000);
  other.exec('ROLLBACK');
});
