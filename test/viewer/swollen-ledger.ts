import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { type Found, fillBatch } from './filled-ledger.ts';

export async function ledgerOf(trials: number, found: (ordinal: number) => Partial<Found>) {
  const folder = mkdtempSync(join(tmpdir(), 'offsite-reader-'));
  const ledger = new Ledger(folder, systemClock);
  onTestFinished(() => {
    ledger[Symbol.dispose]();
    rmSync(folder, { recursive: true });
  });
  await fillBatch(ledger, {
    id: 'batch_a',
    cases: ['one'],
    variants: ['v'],
    repeats: trials,
    found: (_case, _variant, ordinal) => ({ verdict: 'failed', ...found(ordinal) }),
  });
  const rows = ledger.records.all('SELECT result FROM trials ORDER BY ordinal');
  return { folder, ledger, hashes: rows.map(({ result }) => String(result)) };
}

/** A record with a call of a tool whose input is much larger in memory than in the ledger. */
export const swelling = (ordinal: number, values: number): Partial<Found> => {
  const input = Array.from({ length: values }, () => ({}));
  return { events: [{ kind: 'tool', name: `tool ${ordinal}`, at: 1_000_000, input }] };
};
