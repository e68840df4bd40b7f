import { createHash } from 'node:crypto';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import type { ReportedTrial } from '../../src/contract/report.ts';
import { BlobStore } from '../../src/ledger/blobs.ts';
import { openDatabase } from '../../src/ledger/database.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { Redactor } from '../../src/redaction/redactor.ts';
import { eachFolder, folder } from '../each-folder.ts';
import { queueTrial } from './queue-trial.ts';

eachFolder();

const clock: Clock = { ...systemClock, now: () => 1_000 };
const report: ReportedTrial = {
  caseName: 'A',
  ordinal: 0,
  taskIndex: 0,
  events: [],
  outcome: { passed: true },
};

function withOneTrial(ledger: Ledger) {
  const run = {
    id: 'run_1',
    taskIndex: 0,
    caseId: 'a',
    caseName: 'A',
    variant: 'v',
    details: { variables: {} },
  };
  const batch = ledger.batches.add({
    service: 'embedded',
    id: 'batch_1',
    suite: 'Suite',
    file: 'suite.yaml',
    runs: [run],
  });
  return queueTrial(ledger, batch.key, 0);
}

describe('a finished trial', () => {
  test('is on disk with its report queued, and is still there when the ledger is opened again', async () => {
    {
      using ledger = new Ledger(folder, clock);
      const attempt = ledger.trials.beginAttempt(withOneTrial(ledger));
      await ledger.trials.finish(attempt, { verdict: 'passed', result: { a: 1 }, report });
    }
    using ledger = new Ledger(folder, clock);
    const [pending] = ledger.outbox.pending();
    expect(pending).toMatchObject({
      runId: 'run_1',
      batchId: 'batch_1',
      caseId: 'a',
      ordinal: 0,
      report: 'queued',
      tries: 0,
    });
    expect(ledger.outbox.body(pending?.key ?? 0)).toEqual(report);
  });

  test('cannot be begun again, and its report stays', async () => {
    using ledger = new Ledger(folder, clock);
    const trial = withOneTrial(ledger);
    await ledger.trials.finish(ledger.trials.beginAttempt(trial), { verdict: 'passed', result: 1, report });
    expect(() => ledger.trials.beginAttempt(trial)).toThrow();
    expect(ledger.outbox.body(trial)).toEqual(report);
  });

  test('leaves the outbox when it is delivered, and stays in it when deferred, parked or only sent', async () => {
    using ledger = new Ledger(folder, clock);
    const trial = withOneTrial(ledger);
    await ledger.trials.finish(ledger.trials.beginAttempt(trial), { verdict: 'passed', result: 1, report });
    ledger.outbox.become(trial, 'queued', { answer: 'no answer', nextAt: 61_000 });
    expect(ledger.outbox.pending()[0]).toMatchObject({
      report: 'queued',
      tries: 0,
      nextAt: 61_000,
      answer: 'no answer',
    });
    ledger.outbox.become(trial, 'parked', { answer: '403', version: '1.0.0' });
    const all = { service: 'embedded', now: 1e9, limit: 4 };
    expect(ledger.outbox.due(all)).toEqual([]);
    expect(ledger.outbox.pending()[0]).toMatchObject({ report: 'parked', answer: '403' });
    ledger.outbox.become(trial, 'sent');
    expect(ledger.outbox.pending()[0]).toMatchObject({ report: 'sent' });
    expect(ledger.outbox.due(all)).toEqual([]);
    ledger.outbox.become(trial, 'delivered');
    expect(ledger.outbox.pending()).toEqual([]);
  });
});

test('attempts are counted, and an abandoned one leaves its trial to be run again', async () => {
  using ledger = new Ledger(folder, clock);
  const trial = withOneTrial(ledger);
  const first = ledger.trials.beginAttempt(trial);
  await ledger.trials.abandonAttempt(first, 'void', { kind: 'infrastructure' });
  expect(ledger.trials.beginAttempt(trial).number).toBe(2);
});

describe('the database', () => {
  test('of a newer version is refused, and untouched', () => {
    const file = join(folder, 'x.db');
    openDatabase(file, ['CREATE TABLE a (x)', 'CREATE TABLE b (x)']).close();
    expect(() => openDatabase(file, ['CREATE TABLE a (x)'])).toThrow(
      /has version 2; this Offsite knows versions up to 1/,
    );
    openDatabase(file, ['CREATE TABLE a (x)', 'CREATE TABLE b (x)']).close();
  });

  test('is backed up before it is migrated', () => {
    const file = join(folder, 'x.db');
    const old = openDatabase(file, ['CREATE TABLE a (x)']);
    old.exec('INSERT INTO a VALUES (7)');
    old.close();
    openDatabase(file, ['CREATE TABLE a (x)', 'ALTER TABLE a ADD COLUMN y']).close();
    const backup = openDatabase(`${file}.before-v2`, ['CREATE TABLE a (x)']);
    expect(backup.prepare('SELECT * FROM a').all()).toEqual([{ x: 7 }]);
    backup.close();
  });

  test('stays at its version when a migration fails', () => {
    const file = join(folder, 'x.db');
    openDatabase(file, ['CREATE TABLE a (x)']).close();
    expect(() => openDatabase(file, ['CREATE TABLE a (x)', 'CREATE TABLE b (x); nonsense'])).toThrow(
      /cannot open/,
    );
    const database = openDatabase(file, ['CREATE TABLE a (x)']);
    expect(database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all()).toEqual([
      { name: 'a' },
    ]);
    database.close();
  });

  test('that is no database is an error that names the file', () => {
    const file = join(folder, 'x.db');
    writeFileSync(file, 'this is not a database, whatever it is called'.repeat(100));
    expect(() => openDatabase(file, ['CREATE TABLE a (x)'])).toThrow(file);
  });
});

describe('blobs', () => {
  test('are kept once under their sha256, streams and buffers alike', async () => {
    const blobs = new BlobStore(join(folder, 'blobs'));
    const abc = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad';
    async function* stream() {
      yield Buffer.from('a');
      yield Buffer.from('bc');
    }
    expect(await blobs.put(stream())).toEqual({ sha256: abc, byteSize: 3 });
    expect(await blobs.put(Buffer.from('abc'))).toEqual({ sha256: abc, byteSize: 3 });
    expect(blobs.read(abc).toString()).toBe('abc');
    expect(readdirSync(blobs.folder)).toEqual(['ba']);
  });

  test('leave nothing behind when their source fails midway', async () => {
    const blobs = new BlobStore(join(folder, 'blobs'));
    async function* broken() {
      yield Buffer.from('half');
      throw new Error('the source broke');
    }
    await expect(blobs.put(broken())).rejects.toThrow(/the source broke/);
    expect(readdirSync(blobs.folder)).toEqual([]);
  });

  test('that were damaged on disk are not read as if they were whole', async () => {
    const blobs = new BlobStore(join(folder, 'blobs'));
    const { sha256 } = await blobs.put(Buffer.from('abc'));
    writeFileSync(blobs.pathOf(sha256), 'abd');
    expect(() => blobs.read(sha256)).toThrow(/damaged/);
  });
});

test('a secret is in no blob, also where it came in pieces; hash and size are those of what is kept', async () => {
  const redactor = new Redactor(['a-very-secret-key']);
  const blobs = new BlobStore(join(folder, 'redacted'), undefined, redactor);
  async function* pieces() {
    yield Buffer.from('key: a-very-');
    yield Buffer.from('secret-key.');
  }
  const expected = Buffer.from('key: [redacted].');
  const sha256 = createHash('sha256').update(expected).digest('hex');
  expect(await blobs.put(pieces())).toEqual({ sha256, byteSize: expected.length });
  expect(await blobs.put(Buffer.from('key: a-very-secret-key.'))).toEqual({
    sha256,
    byteSize: expected.length,
  });
  expect(blobs.read(sha256)).toEqual(expected);
});
