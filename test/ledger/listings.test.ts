import { readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { sideOf } from '../../src/comparison/side.ts';
import { listBatches } from '../../src/ledger/find.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { completeListings, listingsOf } from '../../src/ledger/listings.ts';
import { migrations } from '../../src/ledger/migrations.ts';
import { listingOf } from '../../src/record/listing.ts';
import { recordVersion, type TrialRecord } from '../../src/record/trial-record.ts';
import { fillBatch } from '../viewer/filled-ledger.ts';
import { report } from './queue-trial.ts';

const usage = { totalTokens: 700, costUsd: 0.25 };
const failed: TrialRecord = {
  version: recordVersion,
  verdict: 'failed',
  startedAt: 1_000,
  finishedAt: 4_000,
  phases: [],
  modelUnmeasured: false,
  models: {
    exchanges: [],
    connections: [],
    modelMs: 0,
    agent: { acted: true },
    usage: [{ role: 'agent', model: 'm', requests: 1, usage }],
  },
  verifySteps: [{ command: 'npm test', exitCode: 1, output: 'no\nno', outputTruncated: false }],
};

async function ledgerFolder() {
  return mkdtempDisposable(join(tmpdir(), 'offsite-ledger-'));
}

test('what lists show is stored when a trial ends: sums need no record', async () => {
  await using folder = await ledgerFolder();
  using ledger = new Ledger(folder.path, systemClock);
  await fillBatch(ledger, { id: 'b', cases: ['one'], variants: ['v'], found: () => undefined });
  const attempt = ledger.trials.beginAttempt(ledger.queue.ofBatch(1)[0]?.key ?? 0);
  const listing = listingOf(failed);
  await ledger.trials.finish(attempt, { verdict: 'failed', result: failed, listing, report });
  const [stored] = listingsOf(ledger, 1).values();
  expect(stored).toEqual(JSON.parse(JSON.stringify(listing)));
  expect(stored).toMatchObject({ failure: 'verify: npm test exited 1: no', failures: 1, totalTokens: 700 });
  rmSync(ledger.blobs.folder, { recursive: true });
  expect(listBatches(ledger.records)).toMatchObject([
    { failed: 1, unlisted: 0, durationMs: 3_000, tokens: 700, costUsd: 0.25 },
  ]);
  // The record itself is missing, and a list of trials says so.
  expect(listingsOf(ledger, 1).size).toBe(0);
});

test('a sum is known only if each of its parts is', async () => {
  await using folder = await ledgerFolder();
  using ledger = new Ledger(folder.path, systemClock);
  await fillBatch(ledger, {
    id: 'b',
    cases: ['one', 'two'],
    variants: ['v'],
    found: (name) => (name === 'one' ? failed : { ...failed, modelUnmeasured: true }),
  });
  completeListings(ledger, 1);
  expect(listBatches(ledger.records)).toMatchObject([
    { durationMs: 6_000, tokens: undefined, costUsd: undefined },
  ]);
});

test('a ledger of an older Offsite gets what lists show when a list first needs it', async () => {
  await using folder = await ledgerFolder();
  const file = join(folder.path, 'ledger.db');
  {
    using ledger = new Ledger(folder.path, systemClock);
    await fillBatch(ledger, { id: 'b', cases: ['one', 'two'], variants: ['v'], found: () => failed });
  }
  {
    using database = new DatabaseSync(file);
    for (const { name } of database.prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'").all())
      database.exec(`DROP TRIGGER ${name}`);
    database.exec('DROP TABLE batch_sums; DROP INDEX trials_audited');
    for (const column of [
      'steady_clock',
      'steady_from',
      'steady_to',
      'audit',
      'listing',
      'record_bytes',
      'cost_usd',
      'tokens',
      'duration_ms',
    ])
      database.exec(`ALTER TABLE trials DROP COLUMN ${column}`);
    database.exec('DROP INDEX trials_void');
    for (const column of ['commit_id', 'commit_dirty'])
      database.exec(`ALTER TABLE batches DROP COLUMN ${column}`);
    database.exec(`PRAGMA user_version = ${migrations.length - 8}`);
  }
  using ledger = new Ledger(folder.path, systemClock);
  expect(listBatches(ledger.records)).toMatchObject([{ failed: 2, unlisted: 2 }]);
  expect([...listingsOf(ledger, 1).values()]).toMatchObject([{ totalTokens: 700 }, { totalTokens: 700 }]);
  expect(listBatches(ledger.records)).toMatchObject([{ unlisted: 0, tokens: 1_400, costUsd: 0.5 }]);
});

test('lists are read while another process writes: what they show is stored another time', async () => {
  await using folder = await ledgerFolder();
  using ledger = new Ledger(folder.path, systemClock);
  await fillBatch(ledger, { id: 'b', cases: ['one', 'two'], variants: ['v'], found: () => failed });
  using other = new DatabaseSync(join(folder.path, 'ledger.db'));
  other.exec('BEGIN IMMEDIATE');
  expect([...listingsOf(ledger, 1).values()]).toMatchObject([{ totalTokens: 700 }, { totalTokens: 700 }]);
  other.exec('ROLLBACK');
  expect(listBatches(ledger.records)).toMatchObject([{ unlisted: 2 }]);
  listingsOf(ledger, 1);
  expect(listBatches(ledger.records)).toMatchObject([{ unlisted: 0, tokens: 1_400 }]);
});

test('a record that cannot be read makes no list wait for another process', async () => {
  await using folder = await ledgerFolder();
  using ledger = new Ledger(folder.path, systemClock);
  await fillBatch(ledger, { id: 'b', cases: ['one'], variants: ['v'], found: () => failed });
  rmSync(ledger.blobs.folder, { recursive: true });
  using other = new DatabaseSync(join(folder.path, 'ledger.db'));
  other.exec('BEGIN IMMEDIATE');
  expect(listingsOf(ledger, 1).size).toBe(0);
});

test('a record that was changed after its trial ended does not count in a comparison', async () => {
  await using folder = await ledgerFolder();
  using ledger = new Ledger(folder.path, systemClock);
  await fillBatch(ledger, { id: 'b', cases: ['one'], variants: ['v'], found: () => failed });
  listingsOf(ledger, 1);
  const batches = [ledger.batches.byKey(1)];
  expect(sideOf(ledger, batches, 'v')).toMatchObject({ unreadable: 0, cases: [{ failed: 1 }] });
  const file = ledger.blobs.pathOf(String(ledger.records.value('SELECT result FROM trials')));
  const content = readFileSync(file, 'utf8');
  writeFileSync(file, content.replace('"failed"', '"passed"'));
  const later = new Date(Date.now() + 60_000);
  utimesSync(file, later, later);
  expect(sideOf(ledger, batches, 'v')).toMatchObject({ unreadable: 1, cases: [{ failed: 0 }] });
});
