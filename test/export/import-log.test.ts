import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { chosenToResume } from '../../src/api/resume.ts';
import type { ForeignLog } from '../../src/export/foreign-log.ts';
import { harborForm } from '../../src/export/harbor-job.ts';
import { inspectForm } from '../../src/export/inspect-log.ts';
import { readHarborJob } from '../../src/export/read-harbor-job.ts';
import { readInspectLogs } from '../../src/export/read-inspect-log.ts';
import type { TrialForm } from '../../src/export/write-export.ts';
import { listBatches, listTrials } from '../../src/ledger/find.ts';
import { refuseForeign, refuseLog, storeForeignBatch } from '../../src/ledger/foreign-batches.ts';
import { listingsOf } from '../../src/ledger/listings.ts';
import { batchMarks } from '../../src/record/batch-marks.ts';
import { listingOf } from '../../src/record/listing.ts';
import { readRecord } from '../../src/record/read-record.ts';
import { folder } from '../each-folder.ts';
import { eachLedger, ledger } from '../ledger/each-ledger.ts';
import { exported } from './exported-trials.ts';
import { type ZipPart, zipOf } from './zip-file.ts';

eachLedger({ at: 'data' });

async function fill(form: TrialForm): Promise<void> {
  for (const trial of exported) await form.add(trial);
  await form.end();
}

/** The logs that Offsite writes of the trials. */
async function inspectLogs(): Promise<ForeignLog> {
  const files = new Map<string, Buffer[]>();
  await fill(
    inspectForm(async (name) => {
      const parts: Buffer[] = [];
      files.set(join(folder, name), parts);
      return async (part) => void parts.push(Buffer.from(part));
    }),
  );
  for (const [file, parts] of files) writeFileSync(file, Buffer.concat(parts));
  return readInspectLogs([...files.keys()]);
}

async function harborJob(): Promise<ForeignLog> {
  await fill(harborForm(async (path, text) => void put(`job/${path}`, text)));
  return readHarborJob(join(folder, 'job'));
}

function put(path: string, text: string | Buffer): string {
  const file = join(folder, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
}

const store = (log: ForeignLog) => storeForeignBatch(ledger, log, log.trials);

describe.each([
  ['.eval logs', inspectLogs],
  ['a job of Harbor', harborJob],
])('%s that Offsite exported', (_, write) => {
  test('have the same verdicts, tokens, cost, durations and commands when they are imported', async () => {
    const { key, suite } = await store(await write());
    expect(suite).toBe('Suite, the "first"');
    const listings = listingsOf(ledger, key);
    const facts = (
      variant: string,
      ordinal: number,
      verdict: unknown,
      listing: ReturnType<typeof listingOf>,
    ) => {
      const { startedAt, finishedAt, totalTokens, costUsd, commands, harnessVersion } = listing;
      return {
        variant,
        ordinal,
        verdict,
        startedAt,
        finishedAt,
        totalTokens,
        costUsd,
        commands,
        harnessVersion,
      };
    };
    const imported = listTrials(ledger.records, key).map((trial) => {
      const listing = listings.get(trial.key);
      if (!listing) throw new Error('a trial has a listing');
      return facts(trial.variant, trial.ordinal, trial.verdict, listing);
    });
    expect(imported).toEqual(
      exported.map(({ run, ordinal, record }) =>
        facts(run.variant, ordinal, record.verdict, listingOf(record)),
      ),
    );
  });

  test('are marked as foreign, and cannot be imported twice, resumed, graded again or reported', async () => {
    const batch = await store(await write());
    const [listed] = listBatches(ledger.records);
    expect(listed && batchMarks(listed)).toEqual(['foreign']);
    await expect(store(await write())).rejects.toMatchObject({ code: 'LOG_IMPORTED' });
    expect(() => chosenToResume(ledger, 'embedded', batch.id)).toThrowError(
      /cannot be resumed: it is foreign/,
    );
    expect(() => refuseForeign(batch, 'graded again')).toThrowError(/cannot be graded again: it is foreign/);
    expect(() => refuseLog(batch, 'audited')).toThrowError(/cannot be audited: it is foreign/);
    expect(refuseLog({ ...batch, id: 'batch_of_evidence' }, 'audited')).toBeUndefined();
    expect(ledger.outbox.pending()).toEqual([]);
    expect(ledger.batches.open()).toEqual([]);
  });

  test('keep what was said and done', async () => {
    const { key } = await store(await write());
    const [trial] = listTrials(ledger.records, key);
    const record = readRecord(ledger.blobs.readJson(trial?.result ?? ''));
    expect(record).toMatchObject({
      subject: { prompt: 'Say "hello",\nand nothing else.', model: 'm-large', harness: 'codex' },
      trajectory: [{ command: 'ls', output: 'no such "file"\n', exitCode: 2 }],
      events: expect.arrayContaining([
        expect.objectContaining({ kind: 'message', text: 'I look.' }),
        expect.objectContaining({ kind: 'tool', name: 'read', input: { input: 'a.txt' }, output: 'a' }),
      ]),
    });
  });
});

/** What `.eval` files of inspect's own have at least. */
const header = { eval: { created: '2026-03-12T14:14:00+00:00', task: 'sums', model: 'openai/m' } };
const sample = {
  id: 1,
  epoch: 1,
  input: [{ role: 'user', content: '1+1?' }],
  scores: { match: { value: 'C' } },
};

const part = (name: string, content: unknown, lies: Partial<ZipPart> = {}): ZipPart => ({
  name,
  content: JSON.stringify(content),
  ...lies,
});
const logOf = (parts: readonly ZipPart[], options?: Parameters<typeof zipOf>[1]) =>
  readInspectLogs([put('log.eval', zipOf(parts, options))]);
const whole = (lies: Partial<ZipPart>) => [
  part('header.json', header),
  part('samples/1_epoch_1.json', sample, lies),
];

describe('a log of another program', () => {
  test.each(['stored', 'deflate', 'zstd'] as const)('is read if it is compressed as %s', async (method) => {
    const log = await logOf(whole({ method }));
    const [trial, ...others] = await Array.fromAsync(log.trials);
    expect(others).toEqual([]);
    expect(log).toMatchObject({ suite: 'sums', startedAt: Date.UTC(2026, 2, 12, 14, 14) });
    expect(trial).toMatchObject({
      caseId: '1',
      variant: 'openai/m',
      ordinal: 0,
      result: { verdict: 'passed', subject: { prompt: '1+1?' } },
    });
  });

  test.each([
    ['C', 'passed'],
    ['I', 'failed'],
    ['P', 'failed'],
    [1, 'passed'],
    [0.5, 'failed'],
    [true, 'passed'],
    [{ a: 1 }, 'void'],
    ['sorry', 'void'],
  ])('with the score %j gives the verdict %s', async (value, verdict) => {
    const scored = { ...sample, scores: { other: { value: 'C' }, match: { value } } };
    const results = { headline: { scorer: 'match' } };
    const log = await logOf([part('header.json', { ...header, results }), part('samples/1.json', scored)]);
    expect(await Array.fromAsync(log.trials)).toMatchObject([{ result: { verdict } }]);
  });

  test.each<[why: string, lies: Partial<ZipPart>, message: RegExp]>([
    [
      'makes more bytes than it claims',
      { content: 'x'.repeat(1_000_000), claimed: 10 },
      /larger than|maxOutput/i,
    ],
    ['makes fewer bytes than it claims', { claimed: 1_000 }, /not what the zip says/],
    ['claims too many bytes', { claimed: 4_000_000_000 }, /too large/],
    ['has another checksum', { crc: 1 }, /not what the zip says/],
    ['is encrypted', { encrypted: true }, /encrypted/],
    ['is compressed in a way that nobody writes', { method: 'unknown' }, /method 14/],
    ['is no JSON', { content: '{"id": 1,}' }, /samples\/1_epoch_1.json cannot be read: .*position 9/],
    ['is nested too deep', { content: '['.repeat(100_000) + ']'.repeat(100_000) }, /levels|too many/],
    ['is no sample', { content: '{"id": 1, "epoch": 0}' }, /epoch: /],
    ['is not UTF-8', { content: Buffer.from([0x22, 0xff, 0x22]) }, /encoded data was not valid/],
  ])('that %s is refused with its place, and nothing is imported', async (_, lies, message) => {
    const log = await logOf(whole(lies));
    await expect(store(log)).rejects.toThrowError(message);
    await expect(Array.fromAsync((await logOf(whole(lies))).trials)).rejects.toMatchObject({
      code: 'LOG_UNREADABLE',
    });
    expect(listBatches(ledger.records)).toEqual([]);
  });

  test.each<[why: string, parts: readonly ZipPart[], options?: Parameters<typeof zipOf>[1]]>([
    ['leads out of its folder', [part('header.json', header), part('../../x', '')]],
    ['says that it has more files than it has', [part('header.json', header)], { entries: 3 }],
    ['has no header', [part('samples/1.json', sample)]],
  ])('whose zip %s is refused', async (_, parts, options) => {
    await expect(logOf(parts, options)).rejects.toMatchObject({ code: 'LOG_UNREADABLE', kind: 'input' });
  });

  test('with a time that no record can hold is refused, and nothing is imported', async () => {
    const endless = { ...sample, total_time: 1e308 };
    const log = await logOf([part('header.json', header), part('samples/1.json', endless)]);
    await expect(store(log)).rejects.toMatchObject({ code: 'LOG_UNREADABLE', kind: 'input' });
    expect(listBatches(ledger.records)).toEqual([]);
  });

  test('beside one of another task is refused, because they are two suites', async () => {
    const other = part('header.json', { eval: { ...header.eval, task: 'products' } });
    const files = [put('a.eval', zipOf(whole({}))), put('b.eval', zipOf([other]))];
    await expect(readInspectLogs(files)).rejects.toThrowError(/several suites: sums, products/);
  });

  test('that is no zip, or is not there, is refused', async () => {
    for (const file of [put('log.eval', 'PK but no more'), join(folder, 'none.eval')])
      await expect(readInspectLogs([file])).rejects.toMatchObject({ code: 'LOG_UNREADABLE' });
  });

  test('names a job of Harbor if it gets the folder of all jobs', async () => {
    await harborJob();
    expect(() => readHarborJob(folder)).toThrow(`name one of them, such as ${join(folder, 'job')}`);
  });

  test('with a link in a job of Harbor reads nothing outside of the job', async () => {
    await harborJob();
    const outside = put('outside.json', '{"steps": []}');
    mkdirSync(join(folder, 'job/trial/agent'), { recursive: true });
    symlinkSync(outside, join(folder, 'job/trial/result.json'));
    const log = readHarborJob(join(folder, 'job'));
    await expect(Array.fromAsync(log.trials)).rejects.toMatchObject({ code: 'FILE_UNREADABLE' });
  });
});
