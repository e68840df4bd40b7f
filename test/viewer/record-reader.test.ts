import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { RecordReader } from '../../src/viewer/read/record-reader.ts';
import { type Found, fillBatch } from './filled-ledger.ts';

async function ledgerOf(trials: number, found: (ordinal: number) => Partial<Found>) {
  const folder = mkdtempSync(join(tmpdir(), 'offsite-reader-'));
  const ledger = new Ledger(folder, systemClock);
  onTestFinished(() => {
    ledger[Symbol.dispose]();
    rmSync(folder, { recursive: true });
  });
  await fillBatch(ledger, {
    ...{ id: 'batch_a', cases: ['one'], variants: ['v'], repeats: trials },
    found: (_case, _variant, ordinal) => ({ verdict: 'failed', ...found(ordinal) }),
  });
  const rows = ledger.records.all('SELECT result FROM trials ORDER BY ordinal');
  return { folder, ledger, hashes: rows.map(({ result }) => String(result)) };
}

/** Reads all records in a process with a heap of so many MiB. Rejects if that is not enough. */
async function readAll(folder: string, heap: number): Promise<string> {
  const program = fileURLToPath(new URL('./read-all-program.ts', import.meta.url));
  const run = promisify(execFile);
  return (await run(process.execPath, [`--max-old-space-size=${heap}`, program, folder])).stdout;
}

/** A record with a call of a tool whose input is much larger in memory than in the ledger. */
const swelling = (ordinal: number, values: number): Partial<Found> => {
  const input = Array.from({ length: values }, () => ({}));
  return { events: [{ kind: 'tool', name: `tool ${ordinal}`, at: 1_000_000, input }] };
};

test('a small heap is enough to read many records that are large in memory', async () => {
  const { folder } = await ledgerOf(20, (ordinal) => swelling(ordinal, 245_000));
  const stdout = await readAll(folder, 128);
  expect(stdout).toBe('20\n');
}, 120_000);

test('a small heap is enough for the summaries of many records with large outputs', async () => {
  const { folder } = await ledgerOf(40, (ordinal) => {
    const output = `${ordinal}\nAssertionError: this is not that\n${'x'.repeat(3 * 1024 ** 2)}`;
    return { verifySteps: [{ command: 'x', exitCode: 1, output, outputTruncated: false }] };
  });
  const stdout = await readAll(folder, 64);
  expect(stdout).toBe('40\n');
}, 120_000);

test('the records that were used last are kept, as many as fit, and the last one in any case', async () => {
  const { ledger, hashes } = await ledgerOf(3, (ordinal) => swelling(ordinal, 1_000));
  const [one = '', two = '', three = ''] = hashes;
  const weighing = new RecordReader(ledger);
  weighing.read(one);
  const reader = new RecordReader(ledger, weighing.weight * 2.5);
  const [first, second] = [reader.read(one), reader.read(two)];
  expect(reader.read(one)).toBe(first);
  reader.read(three);
  expect(reader.read(one)).toBe(first);
  expect(reader.read(two)).not.toBe(second);
  const small = new RecordReader(ledger, 0);
  const last = small.read(one);
  expect(small.read(one)).toBe(last);
  small.read(two);
  expect(small.read(one)).not.toBe(last);
});
