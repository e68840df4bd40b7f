import { mkdirSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { backUpLedger } from '../../src/ledger/back-up.ts';
import { checkLedger } from '../../src/ledger/check.ts';
import { listBatches, listTrials } from '../../src/ledger/find.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { listingsOf } from '../../src/ledger/listings.ts';
import { pruneLedger } from '../../src/ledger/prune.ts';
import { recordVersion, type TrialRecord } from '../../src/record/trial-record.ts';
import { offsite } from '../cli/offsite.ts';
import { openPlace, type Place } from '../cli/place.ts';
import { queueTrial, report } from './queue-trial.ts';

const { signal } = new AbortController();

/** A data folder with a batch whose trial has passed. */
async function withResult(place: Place): Promise<string> {
  const folder = join(place.folder, 'data');
  using ledger = new Ledger(folder, systemClock);
  const batch = ledger.batches.add({
    service: 'there',
    id: 'batch_1',
    suite: 'S',
    file: undefined,
    runs: [{ id: 'run_1', taskIndex: 0, caseId: 'a', caseName: 'A', variant: 'v' }],
  });
  const attempt = ledger.trials.beginAttempt(queueTrial(ledger, batch.key, 0));
  const result: TrialRecord = {
    verdict: 'passed',
    version: recordVersion,
    startedAt: 0,
    finishedAt: 1,
    modelUnmeasured: false,
    phases: [],
  };
  await ledger.trials.finish(attempt, { verdict: 'passed', result, report });
  ledger.outbox.become(attempt.trial, 'delivered');
  return folder;
}

test.each([
  ['is missing', (file: string) => rmSync(file)],
  ['is empty', (file: string) => truncateSync(file, 0)],
])('a ledger that %s beside its results is refused, with the way back', async (what, lose) => {
  using place = openPlace();
  const folder = await withResult(place);
  lose(join(folder, 'ledger.db'));
  writeFileSync(join(folder, 'ledger.db.before-v7'), 'older');
  expect(() => new Ledger(folder, systemClock)).toThrow(
    expect.objectContaining({
      code: 'LEDGER_LOST',
      message: expect.stringContaining(what),
      hint: expect.stringMatching(/offsite data backup.*ledger\.db\.before-v7/),
    }),
  );
});

test('a ledger without a batch keeps its blobs, and is not whole', async () => {
  using place = openPlace();
  const folder = await withResult(place);
  using ledger = new Ledger(folder, systemClock);
  for (const table of ['changes', 'reports', 'attempts', 'trials', 'runs', 'batches'])
    ledger.records.run(`DELETE FROM ${table}`);
  const rule = { before: Date.now(), now: Date.now() + 48 * 3_600_000, dryRun: false };
  expect(await pruneLedger(ledger, rule, signal)).toMatchObject({ blobs: 0, spared: 2 });
  expect(await checkLedger(ledger, signal)).toMatchObject({ empty: true });
  expect((await ledger.blobs.list()).blobs.size).toBe(2);
});

test('a ledger whose batches were all pruned is whole, and the next prune removes their blobs', async () => {
  using place = openPlace();
  using ledger = new Ledger(await withResult(place), systemClock);
  const rule = { before: Date.now() + 1_000, now: Date.now(), dryRun: false };
  expect(await pruneLedger(ledger, rule, signal)).toMatchObject({ batches: 1, blobs: 0 });
  expect(await checkLedger(ledger, signal)).toMatchObject({ empty: false, orphaned: 2 });
  const later = { ...rule, now: Date.now() + 48 * 3_600_000 };
  expect(await pruneLedger(ledger, later, signal)).toMatchObject({ batches: 0, blobs: 2, spared: 0 });
});

test.each([['check'], ['backup', 'copy'], ['prune', '--older-than', '30d'], ['workspaces']])(
  'data %s of a folder that has no ledger is refused, and makes none',
  async (...args) => {
    using place = openPlace();
    mkdirSync(join(place.folder, 'not-mounted'));
    for (const name of ['wrong-name', 'not-mounted']) {
      const dataFolder = join(place.folder, name);
      const { exitCode, stderr } = await offsite(place, ['data', ...args], { dataFolder });
      expect([exitCode, stderr]).toEqual([
        2,
        expect.stringContaining(`no data folder of Offsite at ${dataFolder}`),
      ]);
    }
    expect(readdirSync(place.folder)).toEqual(['not-mounted']);
    expect(readdirSync(join(place.folder, 'not-mounted'))).toEqual([]);
  },
);

test('a verdict that is not that of its record is found', async () => {
  using place = openPlace();
  using ledger = new Ledger(await withResult(place), systemClock);
  expect((await checkLedger(ledger, signal)).otherVerdicts).toEqual([]);
  ledger.records.run("UPDATE trials SET verdict = 'failed'");
  expect((await checkLedger(ledger, signal)).otherVerdicts).toEqual([
    { what: 'trial 0 of run run_1', ledger: 'failed', record: 'passed' },
  ]);
});

test.each([
  ['of a newer Offsite', { verdict: 'passed', version: 99 }, 'the record was written by a newer Offsite'],
  ['that is no record', { verdict: 'passed' }, 'the record cannot be read: '],
])('a result %s is named, although it is whole', async (_, record, why) => {
  using place = openPlace();
  using ledger = new Ledger(await withResult(place), systemClock);
  expect((await checkLedger(ledger, signal)).unknown).toEqual([]);
  ledger.records.run('UPDATE trials SET result = ?', await ledger.blobs.putJson(record));
  expect(await checkLedger(ledger, signal)).toMatchObject({
    damaged: [],
    missing: [],
    otherVerdicts: [],
    unknown: [{ what: 'trial 0 of run run_1', why: expect.stringContaining(why) }],
  });
});

test('a backup says what the record needs and nobody has', async () => {
  using place = openPlace();
  using ledger = new Ledger(await withResult(place), systemClock);
  for (const sha256 of (await ledger.blobs.list()).blobs) await ledger.blobs.remove(sha256);
  const { missing } = await backUpLedger(ledger, join(place.folder, 'backup'), signal);
  expect(missing).toHaveLength(2);
});

test('a record that was edited after its trial is in no list', async () => {
  using place = openPlace();
  const folder = await withResult(place);
  using ledger = new Ledger(folder, systemClock);
  const [{ key = 0 } = {}] = listBatches(ledger.records);
  const [trial] = listTrials(ledger.records, key);
  expect(listingsOf(ledger, key).size).toBe(1);
  const file = ledger.blobs.pathOf(trial?.result ?? '');
  const text = readFileSync(file, 'utf8');
  writeFileSync(file, text.replace('"finishedAt":1', '"finishedAt":2'));
  expect(listingsOf(ledger, key).size).toBe(0);
  writeFileSync(file, text);
  expect(listingsOf(ledger, key).size).toBe(1);
  ledger.records.run("UPDATE trials SET verdict = 'failed'");
  expect(listingsOf(ledger, key).size).toBe(0);
});

test('a workspace that is damaged is found', async () => {
  using place = openPlace();
  using ledger = new Ledger(await withResult(place), systemClock);
  async function* archive() {
    yield Buffer.from('an archive');
  }
  const { sha256 } = await ledger.workspaces.store(archive());
  ledger.workspaces.keep(1, { kind: 'archive', sha256, byteSize: 10, storedSize: 10 } as never);
  expect(await checkLedger(ledger, signal)).toMatchObject({ workspaces: 1, brokenWorkspaces: [] });
  truncateSync(join(ledger.workspaces.folder, sha256.slice(0, 2), sha256), 3);
  expect((await checkLedger(ledger, signal)).brokenWorkspaces).toEqual([
    { sha256, what: 'the workspace of trial 0 of run run_1' },
  ]);
});

test('a good backup passes its check, also when new trials have left workspaces in it', async () => {
  using place = openPlace();
  const dataFolder = join(place.folder, 'backup');
  {
    using ledger = new Ledger(await withResult(place), systemClock);
    async function* archive() {
      yield Buffer.from('an archive');
    }
    const { sha256 } = await ledger.workspaces.store(archive());
    ledger.workspaces.keep(1, { kind: 'archive', sha256, byteSize: 10, storedSize: 10 } as never);
    await backUpLedger(ledger, dataFolder, signal);
  }
  const check = () => offsite(place, ['data', 'check'], { dataFolder });
  expect(await check()).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/^the ledger is whole/) });
  {
    using restored = new Ledger(dataFolder, systemClock);
    const next = restored.batches.add({
      service: 'there',
      id: 'batch_2',
      suite: 'S',
      file: undefined,
      runs: [{ id: 'run_2', taskIndex: 0, caseId: 'a', caseName: 'A', variant: 'v' }],
    });
    const trial = queueTrial(restored, next.key, 0);
    const { sha256 } = await restored.workspaces.store(Readable.from([Buffer.from('another')]));
    restored.workspaces.keep(trial, { kind: 'archive', sha256, byteSize: 7, storedSize: 7 } as never);
  }
  expect(await check()).toMatchObject({
    exitCode: 0,
    stdout: expect.stringMatching(/^the ledger is whole: .* and 1 workspace read/),
  });
});

test('results for another service than the configured one are not sent, and that is said', async () => {
  using place = openPlace();
  const dataFolder = await withResult(place);
  const send = () => offsite(place, ['data', 'outbox', 'send']);
  expect(await send()).toMatchObject({ exitCode: 0, stdout: 'nothing waits to be reported\n' });
  {
    using ledger = new Ledger(dataFolder, systemClock);
    ledger.outbox.become(1, 'queued');
  }
  const { exitCode, stdout, stderr } = await send();
  expect([exitCode, stdout]).toEqual([2, '']);
  expect(stderr).toContain(
    '1 result is for the service there, and here the embedded service is configured: not sent',
  );
  expect(stderr).toContain('--config');
  expect(readdirSync(dataFolder)).not.toContain('service.db');
});

test("what a prune leaves of the service's own batches is said", async () => {
  using place = openPlace();
  await withResult(place);
  const prune = () => offsite(place, ['data', 'prune', '--older-than', '1d', '--dry-run']);
  expect((await prune()).stderr).not.toContain('service.db');
  await offsite(place, ['service', 'keys', 'create', '--for', 'read']);
  expect((await prune()).stderr).toMatch(
    /^kept service\.db \(.*B\): the batches of the embedded service stay/m,
  );
});

test("the check reads the service's database too", async () => {
  using place = openPlace();
  const dataFolder = await withResult(place);
  await offsite(place, ['service', 'keys', 'create', '--for', 'read']);
  const check = () => offsite(place, ['data', 'check']);
  expect(await check()).toMatchObject({
    exitCode: 0,
    stdout: expect.stringContaining('service.db is whole'),
  });
  const file = join(dataFolder, 'service.db');
  const content = readFileSync(file);
  writeFileSync(file, content.fill(0xa5, 8192));
  expect(await check()).toMatchObject({
    exitCode: 3,
    stdout: expect.stringMatching(/^damaged: the database service\.db: /),
  });
});
