import { messageOf, OffsiteError } from '../../base/offsite-error.ts';
import { auditMarks } from '../../ledger/audits.ts';
import type { StoredBatch } from '../../ledger/batches.ts';
import {
  type ListedBatch,
  listBatches,
  listTrials,
  shortBatchIds,
  variantsOfBatches,
} from '../../ledger/find.ts';
import { fingerprintsOf } from '../../ledger/fingerprints.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { listingsOf } from '../../ledger/listings.ts';
import { lastAttempts, type StoredTrial } from '../../ledger/trial-rows.ts';
import type { ListedAttempt } from '../../record/attempt.ts';
import type { AuditMark } from '../../record/audit.ts';
import { batchMarks } from '../../record/batch-marks.ts';
import type { Cause } from '../../record/cause.ts';
import type { TrialListing } from '../../record/listing.ts';
import { readRecord } from '../../record/read-record.ts';
import { reasonOf } from '../model/explain.ts';
import type { BatchInList, BatchName, BatchPage, CauseOfRow, TrialRow } from '../model/shapes.ts';

/** All batches, newest first. */
export function readBatches({ records, sets }: Ledger): BatchInList[] {
  const parts = sets.partNumbers();
  const variants = variantsOfBatches(records);
  const short = shortBatchIds(records);
  return listBatches(records).map((batch) => {
    const { key, elapsed, cases, suiteCases = cases, answers = 'live', isForeign } = batch;
    const isWhole = answers === 'live' && !isForeign && suiteCases === cases;
    // Without the listings of all its trials, the sums are too small.
    const { tokens, costUsd } = batch.unlisted > 0 ? {} : batch;
    const ofRuns = { set: parts.get(key), variants: variants.get(key) ?? [] };
    return { ...batchRow(batch), shortId: short(batch.id), ...ofRuns, isWhole, elapsed, tokens, costUsd };
  });
}

/** A batch with its trials; undefined if the ledger has none with the key. */
export function readBatch(ledger: Ledger, key: number): BatchPage | undefined {
  const { records } = ledger;
  const [batch] = listBatches(records, { only: key });
  if (!batch) return undefined;
  const attempts = lastAttempts(records, key);
  const audits = auditMarks(records, key);
  const listings = listingsOf(ledger, key);
  return {
    batch: { ...batchRow(batch), set: ledger.sets.partNumbers().get(key) },
    trials: listTrials(records, key).map((trial) => ({
      ...trialRow(trial, attempts.get(trial.key), audits.get(trial.key)),
      ...listedOf(ledger, trial, listings.get(trial.key)),
    })),
    fingerprints: fingerprintsOf(records, key),
  };
}

/** What lists show of a finished trial. If its record cannot be read, its reason says so. */
function listedOf(
  { blobs }: Ledger,
  { verdict, result }: StoredTrial,
  listing: TrialListing | undefined,
): Partial<TrialRow> {
  if (verdict === undefined || result === undefined) return {};
  if (!listing)
    return { reason: readable(() => readRecord(blobs.readClean(result), 'the record')).unreadable };
  const { startedAt, finishedAt, fromService, costUsd, otherCostUsd, totalTokens: tokens } = listing;
  const durationMs = fromService ? undefined : finishedAt - startedAt;
  return { reason: reasonOf(verdict, listing), durationMs, tokens, costUsd, otherCostUsd };
}

/** What is read, or why a record cannot be read. */
export function readable<Value>(read: () => Value): { value?: Value; unreadable?: string } {
  try {
    return { value: read() };
  } catch (error) {
    if (error instanceof OffsiteError || error instanceof SyntaxError)
      return { unreadable: messageOf(error) };
    throw error;
  }
}

/** Identity of a batch. */
export function batchName({ batches, sets }: Ledger, key: number): BatchName {
  return { ...nameOf(batches.byKey(key)), set: sets.partNumbers().get(key) };
}

function nameOf({ key, id, suite, service, startedAt, commit }: StoredBatch) {
  return { key, id, suite, service, startedAt, commit };
}

function batchRow(batch: ListedBatch) {
  const { passed, failed, void: voided, unfinished } = batch;
  return { ...nameOf(batch), passed, failed, void: voided, unfinished, marks: batchMarks(batch) };
}

/** @param last its last attempt */
export function trialRow(
  trial: Omit<StoredTrial, 'finishedAt'>,
  last: ListedAttempt | undefined,
  audit: AuditMark | undefined,
): TrialRow {
  const { key, caseId, caseName, variant, ordinal, state, verdict, report } = trial;
  return {
    key,
    caseId,
    caseName,
    variant,
    ordinal,
    state,
    verdict,
    attempts: last?.number ?? 0,
    startedAt: last?.startedAt,
    durationMs: last?.endedAt === undefined ? undefined : last.endedAt - last.startedAt,
    cause: state === 'finished' ? causeOfRow(last?.cause) : undefined,
    audit,
    ...(report === 'superseded' && { superseded: true }),
  };
}

/** Characters of a cause's message in a list. */
const longestMessage = 300;

function causeOfRow(cause: Cause | undefined): CauseOfRow | undefined {
  return cause && { kind: cause.kind, phase: cause.phase, message: cause.message.slice(0, longestMessage) };
}
