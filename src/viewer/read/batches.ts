import { type ListedBatch, type ListedTrial, listBatches, listTrials } from '../../ledger/find.ts';
import { fingerprintsOf } from '../../ledger/fingerprints.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { lastAttempts } from '../../ledger/trial-rows.ts';
import type { ListedAttempt } from '../../record/attempt.ts';
import { batchMarks } from '../../record/batch-marks.ts';
import type { Cause } from '../../record/cause.ts';
import { tallyOf } from '../model/grid.ts';
import type { BatchName, BatchPage, BatchRow, CauseOfRow, TrialRow } from '../model/shapes.ts';

/** All batches, newest first. */
export function readBatches({ records, sets }: Ledger): BatchRow[] {
  const parts = sets.partNumbers();
  return listBatches(records).map((batch) => ({ ...batchRow(batch), set: parts.get(batch.key) }));
}

/** A batch with its trials; undefined if the ledger has none with the key. */
export function readBatch(ledger: Ledger, key: number): BatchPage | undefined {
  const { records } = ledger;
  const name = batchName(ledger, key);
  if (!name) return undefined;
  const attempts = lastAttempts(records, key);
  const trials = listTrials(records, key).map((trial) => trialRow(trial, attempts.get(trial.key)));
  const marks = listBatches(records, key).flatMap(batchMarks);
  return {
    batch: { ...name, ...tallyOf(trials), marks },
    trials,
    fingerprints: fingerprintsOf(records, key),
  };
}

/** Identity of a batch; undefined if the ledger has none with the key. */
export function batchName({ records, batches, sets }: Ledger, key: number): BatchName | undefined {
  if (!records.get('SELECT 1 FROM batches WHERE key = ?', key)) return undefined;
  const { id, suite, service, startedAt } = batches.byKey(key);
  return { key, id, suite, service, startedAt, set: sets.partNumbers().get(key) };
}

function batchRow(batch: ListedBatch) {
  const { key, id, suite, service, startedAt, passed, failed, unfinished } = batch;
  return {
    ...{ key, id, suite, service, startedAt, passed, failed, void: batch.void, unfinished },
    marks: batchMarks(batch),
  };
}

/** @param last its last attempt */
export function trialRow(trial: Omit<ListedTrial, 'finishedAt'>, last: ListedAttempt | undefined): TrialRow {
  const { key, caseId, caseName, variant, ordinal, state, verdict } = trial;
  return {
    ...{ key, caseId, caseName, variant, ordinal, state, verdict },
    attempts: last?.number ?? 0,
    startedAt: last?.startedAt,
    durationMs: last?.endedAt === undefined ? undefined : last.endedAt - last.startedAt,
    cause: state === 'finished' ? causeOfRow(last?.cause) : undefined,
  };
}

/** Characters of a cause's message in a list. */
const longestMessage = 300;

function causeOfRow(stored: unknown): CauseOfRow | undefined {
  const cause = causeOf(stored);
  return cause && { kind: cause.kind, phase: cause.phase, message: cause.message.slice(0, longestMessage) };
}

/** A stored cause. Attempts of older versions of Offsite may have stored something else. */
export function causeOf(stored: unknown): Cause | undefined {
  const { kind, phase, message, output } = (stored ?? {}) as Record<string, unknown>;
  if (typeof kind !== 'string' || typeof message !== 'string') return undefined;
  return {
    kind: kind as Cause['kind'],
    phase: String(phase) as Cause['phase'],
    message,
    ...(typeof output === 'string' && { output }),
  };
}
