import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

import { ledgerOf, swelling } from './swollen-ledger.ts';

/** Reads all records in a process with a heap of so many MiB. Rejects if that is not enough. */
async function readAll(folder: string, heap: number): Promise<string> {
  const program = fileURLToPath(new URL('./read-all-program.ts', import.meta.url));
  const run = promisify(execFile);
  return (await run(process.execPath, [`--max-old-space-size=${heap}`, program, folder])).stdout;
}

test('a small heap is enough to read many records that are large in memory', async () => {
  const { folder } = await ledgerOf(20, (ordinal) => swelling(ordinal, 245_000));
  const stdout = await readAll(folder, 128);
  expect(stdout).toBe('20\n');
});

test('a small heap is enough for the summaries of many records with large outputs', async () => {
  const { folder } = await ledgerOf(40, (ordinal) => {
    const output = `${ordinal}\nAssertionError: this is not that\n${'x'.repeat(3 * 1024 ** 2)}`;
    return { verifySteps: [{ command: 'x', exitCode: 1, output, outputTruncated: false }] };
  });
  const stdout = await readAll(folder, 64);
  expect(stdout).toBe('40\n');
});
