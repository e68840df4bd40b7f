import { rmSync } from 'node:fs';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { compareTrials } from '../../src/viewer/model/compare.ts';
import { batchIn, fileVersion } from '../../src/viewer/model/exported-file.ts';
import type { BatchPage, TrialRow } from '../../src/viewer/model/shapes.ts';
import { readBatch, readBatchSoFar } from '../../src/viewer/read/batches.ts';
import { fillBatch } from './filled-ledger.ts';

const cause = { kind: 'infrastructure', phase: 'sandbox', message: 'no disk' } as const;

async function ledgerWith(cases: readonly string[]) {
  const folder = await mkdtempDisposable(join(tmpdir(), 'offsite-view-'));
  const ledger = new Ledger(folder.path, systemClock);
  await fillBatch(ledger, {
    id: 'b',
    cases,
    variants: ['v'],
    found: (name) => ({
      verdict: 'void',
      cause,
      startedAt: 1_000,
      finishedAt: 4_000,
      finalMessage: name,
    }),
  });
  return {
    ledger,
    lose: (caseId: string) => {
      const sql = 'SELECT result FROM trials JOIN runs ON runs.key = trials.run WHERE case_id = ?';
      rmSync(ledger.blobs.pathOf(String(ledger.records.value(sql, caseId))));
    },
    async [Symbol.asyncDispose]() {
      ledger[Symbol.dispose]();
      await folder[Symbol.asyncDispose]();
    },
  };
}

const known = (page: BatchPage | undefined) =>
  page?.trials.filter(({ reason, durationMs }) => reason !== undefined && durationMs === 3_000).length;

test('a batch is shown before all its records are read, and each answer has more of them', async () => {
  await using filled = await ledgerWith(['one', 'two', 'three']);
  const reading = { most: 1, unreadable: new Map() };
  const first = readBatch(filled.ledger, 1, reading);
  expect(first?.unread).toBe(2);
  expect(known(first)).toBe(1);
  const second = readBatch(filled.ledger, 1, reading);
  expect([second?.unread, known(second)]).toEqual([1, 2]);
  const third = await readBatchSoFar(filled.ledger, 1, reading.unreadable);
  expect([third?.unread, known(third)]).toEqual([undefined, 3]);
});

test('a record that cannot be read is looked at once, and does not keep others waiting', async () => {
  await using filled = await ledgerWith(['one', 'two']);
  filled.lose('one');
  const reading = { most: 1, unreadable: new Map() };
  expect(readBatch(filled.ledger, 1, reading)?.unread).toBe(1);
  const page = readBatch(filled.ledger, 1, reading);
  expect(page?.unread).toBeUndefined();
  expect(page?.trials).toMatchObject([
    { unreadable: true, durationMs: undefined, reason: expect.stringContaining('missing') },
    { durationMs: 3_000, reason: expect.stringContaining('no disk') },
  ]);
});

test('a trial whose record cannot be read does not count in the comparison of a page', async () => {
  await using filled = await ledgerWith(['one', 'two']);
  filled.lose('one');
  const page = readBatch(filled.ledger, 1);
  if (!page) throw new Error('there is no batch');
  const side = { ...page, variant: 'v' };
  expect(compareTrials(side, side).a).toMatchObject({ void: 1, unreadable: 1 });
});

test('a page that an older Offsite exported has what its summaries say', () => {
  const trial = { key: 7, durationMs: 1 } as TrialRow;
  const batch = { trials: [trial, { ...trial, key: 8 }] } as BatchPage;
  const summaries = [{ key: 7, reason: 'no', durationMs: 3_000, costUsd: 0.5, totalTokens: 700 }];
  expect(batchIn({ batch, summaries })).toMatchObject({
    trials: [{ reason: 'no', durationMs: 3_000, costUsd: 0.5, tokens: 700 }, { durationMs: 1 }],
  });
  expect(batchIn({ version: fileVersion + 1, batch })).toBe('newer');
});
