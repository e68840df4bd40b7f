import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  unlinkSync,
  utimesSync,
  writeSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { join, relative } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { backUpLedger } from '../../src/ledger/back-up.ts';
import { checkLedger } from '../../src/ledger/check.ts';
import { openDatabase } from '../../src/ledger/database.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { migrations } from '../../src/ledger/migrations.ts';
import { pruneLedger } from '../../src/ledger/prune.ts';
import { eachFolder, folder } from '../each-folder.ts';
import { byRoot } from '../needs.ts';
import { queueTrial } from './queue-trial.ts';

eachFolder();

const asRoot = (program: string, ...args: string[]) => void execFileSync(program, args);

const day = 24 * 60 * 60_000;
const never = new AbortController().signal;
const at = (now: number): Clock => ({ ...systemClock, now: () => now });

/** Adds a batch of one trial that is finished, and delivered if so told. Returns the hash of its result. */
async function addFinished(ledger: Ledger, id: string, delivered: boolean): Promise<string> {
  const run = { id: `run_${id}`, taskIndex: 0, caseId: 'a', caseName: 'A', variant: 'v' };
  const batch = ledger.batches.add({ service: 's', id, suite: 'S', file: undefined, runs: [run] });
  const attempt = ledger.trials.beginAttempt(queueTrial(ledger, batch.key, 0));
  const artifact = await ledger.blobs.put(Buffer.from(`artifact of ${id}`));
  const result = { id, artifacts: [{ path: 'out.txt', ...artifact }] };
  const report = {
    caseName: 'A',
    ordinal: 0,
    taskIndex: 0,
    events: [],
    outcome: { passed: true },
    sandboxId: id,
  };
  await ledger.trials.finish(attempt, { verdict: 'passed', result, report });
  if (delivered) ledger.outbox.become(attempt.trial, 'delivered');
  return ledger.queue.ofBatch(batch.key)[0]?.result ?? '';
}

/** Writes nonsense over the beginning of all pages but the first two. */
function damage(file: string): void {
  const handle = openSync(file, 'r+');
  const pages = statSync(file).size / 4096;
  for (let page = 2; page < pages; page++) writeSync(handle, Buffer.alloc(64, 0xa5), 0, 64, page * 4096);
  closeSync(handle);
}

describe('damage', () => {
  test('of a page is detected when the ledger is opened, with what to do', async () => {
    {
      using ledger = new Ledger(folder, systemClock);
      for (let batch = 0; batch < 3; batch++) await addFinished(ledger, `batch_${batch}`, true);
    }
    const file = join(folder, 'ledger.db');
    damage(file);
    expect(() => new Ledger(folder, systemClock)).toThrow(
      expect.objectContaining({
        code: 'DATABASE_DAMAGED',
        message: expect.stringContaining(file),
        hint: expect.stringContaining('backup'),
      }),
    );
  });

  test('is looked for once a day, and at once if something else wrote the file', () => {
    const checked = join(folder, 'ledger.db.checked');
    const lastCheckAt = (now: number) => {
      new Ledger(folder, at(now))[Symbol.dispose]();
      return Number(readFileSync(checked, 'utf8').split(' ')[0]);
    };
    expect(lastCheckAt(day)).toBe(day);
    // What Offsite itself writes is no reason.
    const ledger = new Ledger(folder, at(day + 1_000));
    ledger.batches.add({ service: 's', id: 'b', suite: 'S', file: undefined, runs: [] });
    ledger[Symbol.dispose]();
    expect(lastCheckAt(day + 2_000)).toBe(day);
    utimesSync(join(folder, 'ledger.db'), 1, 1);
    expect(lastCheckAt(day + 3_000)).toBe(day + 3_000);
    expect(lastCheckAt(2 * day + 2_999)).toBe(day + 3_000);
    expect(lastCheckAt(2 * day + 3_000)).toBe(2 * day + 3_000);
    // The clock was set back.
    expect(lastCheckAt(day)).toBe(day);
    // Whoever meets a damaged part has the next start look for it, though nothing wrote the file since.
    {
      using met = new Ledger(folder, at(day), { isChecked: false });
      damage(join(folder, 'ledger.db'));
      expect(() => met.records.check('quick')).toThrow();
    }
    expect(existsSync(checked)).toBe(false);
    rmSync(join(folder, 'ledger.db'));
    new Ledger(folder, at(day))[Symbol.dispose]();
    // What only reads checks nothing, and says of nothing that it was checked.
    rmSync(checked);
    new Ledger(folder, at(day), { isChecked: false })[Symbol.dispose]();
    expect(existsSync(checked)).toBe(false);
  });

  test('of a blob, or its absence, is found by a check, with what it was part of', async () => {
    using ledger = new Ledger(folder, systemClock);
    const truncated = await addFinished(ledger, 'batch_1', true);
    const missing = await addFinished(ledger, 'batch_2', true);
    expect(await checkLedger(ledger, never)).toMatchObject({
      database: undefined,
      damaged: [],
      missing: [],
      orphaned: 0,
    });
    truncateSync(ledger.blobs.pathOf(truncated), 5);
    unlinkSync(ledger.blobs.pathOf(missing));
    const { sha256: orphan } = await ledger.blobs.put(Buffer.from('nobody needs this'));
    expect(orphan).toHaveLength(64);
    const found = await checkLedger(ledger, never);
    expect(found.damaged).toEqual([{ sha256: truncated, what: 'the result of trial 0 of run run_batch_1' }]);
    expect(found.missing).toEqual([{ sha256: missing, what: 'the result of trial 0 of run run_batch_2' }]);
    expect(() => ledger.blobs.read(truncated)).toThrow(/is damaged/);
    expect(() => ledger.blobs.read(missing)).toThrow(/is missing/);
  });

  test('of a blob is mended when the same content is stored again', async () => {
    using ledger = new Ledger(folder, systemClock);
    const content = Buffer.from('the same content');
    const { sha256 } = await ledger.blobs.put(content);
    truncateSync(ledger.blobs.pathOf(sha256), 3);
    await ledger.blobs.put(content);
    expect(ledger.blobs.read(sha256)).toEqual(content);
  });
});

describe('a backup', () => {
  test('is a data folder of its own with everything in it', async () => {
    using ledger = new Ledger(folder, systemClock);
    const result = await addFinished(ledger, 'batch_1', false);
    const target = join(folder, 'copy');
    using service = openDatabase(join(folder, 'service.db'), ['CREATE TABLE runs (id TEXT)']);
    service.exec("INSERT INTO runs VALUES ('run_1')");
    const noted: string[] = [];
    const noteCopy = (file: string) => noted.push(relative(folder, file));
    const beside = ['service.db', 'none.db'].map((name) => ({ name, noteCopy }));
    const backedUp = await backUpLedger(ledger, target, never, beside);
    expect(backedUp).toMatchObject({ folder: target, blobs: 3, damaged: [] });
    // Before the copy has its name: one without the note would be served as the original.
    expect(noted).toEqual(['copy.partial/service.db']);
    using copied = openDatabase(join(target, 'service.db'), ['']);
    expect(copied.prepare('SELECT id FROM runs').all()).toEqual([{ id: 'run_1' }]);
    using copy = new Ledger(target, systemClock);
    expect(copy.blobs.readJson(result)).toMatchObject({ id: 'batch_1' });
    expect(copy.outbox.pending()).toMatchObject([{ batchId: 'batch_1' }]);
    expect(await checkLedger(copy, never)).toMatchObject({ blobs: 3, damaged: [], missing: [], orphaned: 0 });
  });

  test('never overwrites anything, and says of damaged blobs that they are not in it', async () => {
    using ledger = new Ledger(folder, systemClock);
    const result = await addFinished(ledger, 'batch_1', false);
    await expect(backUpLedger(ledger, folder, never)).rejects.toMatchObject({ code: 'BACKUP_EXISTS' });
    truncateSync(ledger.blobs.pathOf(result), 5);
    expect(await backUpLedger(ledger, join(folder, 'copy'), never)).toMatchObject({
      blobs: 2,
      damaged: [result],
    });
  });
});

describe('pruning', () => {
  test('removes what is old and delivered with its blobs; what is young or not delivered stays', async () => {
    const now = Date.now();
    const later = now + 3 * day;
    {
      using ledger = new Ledger(folder, at(now - 40 * day));
      await addFinished(ledger, 'old', true);
      await addFinished(ledger, 'undelivered', false);
    }
    using ledger = new Ledger(folder, at(now));
    await addFinished(ledger, 'young', true);
    const options = { before: now - 30 * day, now: later };
    const expected = { batches: 1, trials: 1, blobs: 3 };
    expect(await pruneLedger(ledger, { ...options, dryRun: true }, never)).toMatchObject(expected);
    expect(ledger.batches.has('s', 'old')).toBe(true);
    expect(await pruneLedger(ledger, { ...options, dryRun: false }, never)).toMatchObject(expected);
    expect(['old', 'undelivered', 'young'].map((id) => ledger.batches.has('s', id))).toEqual([
      false,
      true,
      true,
    ]);
    expect(await checkLedger(ledger, never)).toMatchObject({
      damaged: [],
      missing: [],
      orphaned: 0,
      blobs: 6,
    });
    expect(await pruneLedger(ledger, { ...options, dryRun: false }, never)).toMatchObject({
      batches: 0,
      blobs: 0,
    });
  });

  test('keeps a young blob that nothing refers to, because a running trial may refer to it later', async () => {
    using ledger = new Ledger(folder, systemClock);
    const { sha256 } = await ledger.blobs.put(Buffer.from('of a trial that runs'));
    await pruneLedger(ledger, { before: Date.now(), now: Date.now(), dryRun: false }, never);
    expect(await ledger.blobs.verify(sha256)).toBe('whole');
  });
});

describe('a lock', () => {
  test('is held by one at a time, and free again when it is given up', () => {
    using ledger = new Ledger(folder, systemClock);
    {
      using first = ledger.takeLock('batch-1');
      expect(first).toBeDefined();
      expect(ledger.takeLock('batch-1')).toBeUndefined();
      expect(ledger.lockHolder('batch-1')).toMatchObject({ pid: process.pid, host: hostname() });
      using other = ledger.takeLock('batch-2');
      expect(other).toBeDefined();
    }
    expect(ledger.lockHolder('batch-1')).toBeUndefined();
    const again = ledger.takeLock('batch-1');
    expect(again).toBeDefined();
    again?.remove();
    expect(readdirSync(join(folder, 'locks'))).toEqual(['batch-2.lock']);
  });
});

test('every change of state is in the journal, in order and with its time', async () => {
  using ledger = new Ledger(folder, at(5_000));
  await addFinished(ledger, 'batch_1', true);
  const changes = ledger.records.all('SELECT at, subject, state, detail FROM changes ORDER BY key');
  expect(new Set(changes.map((change) => change.at))).toEqual(new Set([5_000]));
  expect(changes.map(({ subject, state }) => `${subject} ${state}`)).toEqual([
    'batch open',
    'run started',
    'trial queued',
    'trial running',
    'attempt begun',
    'attempt passed',
    'trial finished',
    'report queued',
    'run finished',
    'batch finished',
    'report delivered',
  ]);
});

test('a ledger of the first version is migrated with a backup, and its open batches stay open', () => {
  const file = join(folder, 'ledger.db');
  const old = openDatabase(file, migrations.slice(0, 1));
  old.exec(`
    INSERT INTO batches VALUES (1, 's', 'open', 'S', NULL, 1), (2, 's', 'done', 'S', NULL, 1);
    INSERT INTO runs VALUES (1, 1, 'r1', 0, 'a', 'A', 'v', '{}'), (2, 2, 'r2', 0, 'a', 'A', 'v', '{}');
    INSERT INTO trials VALUES (1, 1, 0, 'queued', NULL, NULL, NULL), (2, 2, 0, 'finished', 'passed', 'x', 1);`);
  old.close();
  using ledger = new Ledger(folder, systemClock);
  expect(ledger.batches.open().map(({ id }) => id)).toEqual(['open']);
  expect(existsSync(`${file}.before-v${migrations.length}`)).toBe(true);
});

test('too many open files are named as that, and not as a full disk', () => {
  const program = `
    import { openSync } from 'node:fs';
    import { createConnection } from 'node:net';
    import { BlobStore } from ${JSON.stringify(new URL('../../src/ledger/blobs.ts', import.meta.url).href)};
    import { connectionFailure } from ${JSON.stringify(new URL('../../src/engine/port/failure.ts', import.meta.url).href)};
    const blobs = new BlobStore(process.argv[1]);
    try { for (;;) openSync('/dev/null'); } catch {}
    const broken = await new Promise((resolve) => createConnection('/none').on('error', resolve));
    const stored = await blobs.put(Buffer.from('x')).catch((error) => error);
    console.log(JSON.stringify([stored, connectionFailure('asking', broken)].map(({ message, hint }) => message + hint)));`;
  const command = 'ulimit -n 64; exec "$0" --input-type=module -e "$1" "$2"';
  const printed = execFileSync('bash', ['-c', command, process.execPath, program, folder], {
    encoding: 'utf8',
  });
  for (const said of JSON.parse(printed) as string[]) {
    expect(said).toMatch(/EMFILE.*Too many files are open.*ulimit -n/s);
    expect(said).not.toMatch(/disk|docker/);
  }
});

byRoot.describe('on a full disk', () => {
  test('nothing is half written, the error says so, and all goes on once there is room', async () => {
    const disk = join(folder, 'disk');
    mkdirSync(disk);
    asRoot('mount', '-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', disk);
    try {
      using ledger = new Ledger(disk, systemClock);
      await addFinished(ledger, 'before', false);
      const filler = join(disk, 'filler');
      for (const size of [65_536, 4096, 1]) {
        try {
          for (;;) appendFileSync(filler, Buffer.alloc(size));
        } catch (error) {
          expect(error).toMatchObject({ code: 'ENOSPC' });
        }
      }
      const failed: unknown[] = [];
      for (let batch = 0; batch < 40; batch++) {
        await addFinished(ledger, `full_${batch}`, false).catch((error) => failed.push(error));
      }
      expect(failed.length).toBeGreaterThan(0);
      for (const error of failed)
        expect(error).toMatchObject({ name: 'OffsiteError', hint: expect.any(String) });
      rmSync(filler);
      await addFinished(ledger, 'after', false);
      const ids = ledger.outbox.pending().map(({ batchId }) => batchId);
      expect([ids.at(0), ids.at(-1)]).toEqual(['before', 'after']);
      expect(await checkLedger(ledger, never)).toMatchObject({
        database: undefined,
        damaged: [],
        missing: [],
      });
    } finally {
      asRoot('umount', '--lazy', disk);
    }
  });
});
