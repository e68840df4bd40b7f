import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type AuditEvent, auditBatch, checkBatch } from '../../src/audit/audit-batch.ts';
import { Checks } from '../../src/audit/checks.ts';
import { lacksAnswers } from '../../src/audit/regraded.ts';
import { checkTraffic } from '../../src/audit/traffic.ts';
import { systemClock } from '../../src/base/clock.ts';
import { printedText } from '../../src/bounds/anyone.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import type { TrialRecord } from '../../src/record/trial-record.ts';
import type { Config } from '../../src/suite/config-file.ts';
import { fillBatch } from '../evidence/batch.ts';

test('a definition of a quadrillion trials is contradicted at once', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'offsite-batch-checks-'));
  try {
    using ledger = new Ledger(folder, systemClock);
    const batch = ledger.batches.byKey(await fillBatch(ledger));
    const stored = ledger.blobs.readJson(batch.plan ?? '') as { plan: object };
    const definition = await ledger.blobs.putJson({ ...stored, plan: { ...stored.plan, trials: 1e15 } });
    const checks = new Checks();
    checkBatch(batch, { ledger, definition, seen: [] }, checks);
    const { contradictions } = checks.level('consistent');
    expect(contradictions).toHaveLength(printedText.count.lines);
    expect(contradictions[0]).toMatchObject({ path: 'adds/one#2', expected: 'a trial', found: 'none' });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('judges whose answers are not in a record are told from those whose are', () => {
  const judged = (...answers: (string | undefined)[]) => {
    const exchanges = answers.map((responseBody) => ({ role: 'judge', responseBody }));
    return lacksAnswers({ models: { exchanges } } as unknown as TrialRecord);
  };
  expect([judged('sha'), judged('sha', undefined), judged(undefined), judged()]).toEqual([
    false,
    true,
    true,
    false,
  ]);
  const rubric = { judgments: [{ evaluator: 'rubric' }] } as unknown as TrialRecord;
  expect(lacksAnswers(rubric)).toBe(true);
});

test('an audit that is stopped has what was found by then, and says how many trials are left', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'offsite-batch-checks-'));
  try {
    using ledger = new Ledger(folder, systemClock);
    const batch = ledger.batches.byKey(await fillBatch(ledger));
    const stopping = new AbortController();
    const events: AuditEvent[] = [];
    let looked = 0;
    const regraded = async (_: unknown, signal: AbortSignal) => {
      if (++looked === 3) stopping.abort(new Error('stopped'));
      signal.throwIfAborted();
      return new Checks().level('regraded');
    };
    const { trials, left } = await auditBatch(
      batch,
      {
        ledger,
        config: {} as Config,
        harnesses: [],
        now: 0,
        problems: [],
        isLeftOut: () => false,
        concurrency: 1,
        regraded,
        observe: (event) => events.push(event),
      },
      stopping.signal,
    );
    expect([trials.length, left]).toEqual([2, 5]);
    expect(events.map(({ kind }) => kind)).toEqual([
      'planned',
      ...['level', 'audited', 'level', 'audited', 'level'],
    ]);
    expect(events[0]).toEqual({ kind: 'planned', trials: 7 });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('trials of which some answers were not recorded share a line, however many', () => {
  const uncheckedOf = (answers: number) => {
    const exchange = { role: 'agent', responseBytes: 1, startedAt: 0, durationMs: 1, usage: {} };
    const models = { exchanges: Array(answers).fill(exchange), usage: [], modelMs: 1 };
    const checks = new Checks();
    checkTraffic({ models } as unknown as TrialRecord, undefined, () => undefined, checks);
    return checks.level('consistent').unchecked.filter((line) => line.includes('answers of the model'));
  };
  expect(uncheckedOf(5)).toHaveLength(1);
  expect(uncheckedOf(5)).toEqual(uncheckedOf(4));
});
