import { setImmediate as nextTurn } from 'node:timers/promises';
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
import { completeListings, listingsSoFar, type ReadingOfRecords } from '../../ledger/listings.ts';
import { lastAttempts, type StoredTrial } from '../../ledger/trial-rows.ts';
import type { ListedAttempt } from '../../record/attempt.ts';
import type { AuditMark } from '../../record/audit.ts';
import { batchMarks } from '../../record/batch-marks.ts';
import type { Cause } from '../../record/cause.ts';
import type { TrialListing } from '../../record/listing.ts';
import { readRecord } from '../../record/read-record.ts';
import type { TrialRecord } from '../../record/trial-record.ts';
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

/** Records of trials without a listing that are read before others get an answer. */
const recordsAtOnce = 200;
/** Milliseconds after which a batch is answered, also if records are still to be read. */
const readingMs = 1_000;

/**
 * As {@link readBatch}, within about a second. An Offsite that stored no listings, or a service, may have
 * left thousands of records to read: the answer then has `unread`, and the next one has more.
 *
 * @param unreadable as of {@link ReadingOfRecords}, for all batches
 */
export async function readBatchSoFar(
  ledger: Ledger,
  key: number,
  unreadable: ReadingOfRecords['unreadable'],
): Promise<BatchPage | undefined> {
  const reading = { most: recordsAtOnce, unreadable };
  const end = performance.now() + readingMs;
  let before = Number.POSITIVE_INFINITY;
  for (;;) {
    const { size } = completeListings(ledger, key, reading).left;
    // As many as before: they cannot be stored now.
    if (size === 0 || size === before || performance.now() > end) return readBatch(ledger, key, reading);
    before = size;
    await nextTurn();
  }
}

/**
 * A batch with its trials; undefined if the ledger has none with the key.
 *
 * @param reading absent to read all records that must be read
 */
export function readBatch(
  ledger: Ledger,
  key: number,
  reading: ReadingOfRecords = { most: Number.POSITIVE_INFINITY, unreadable: new Map() },
): BatchPage | undefined {
  const { records } = ledger;
  const [batch] = listBatches(records, { only: key });
  if (!batch) return undefined;
  const attempts = lastAttempts(records, key);
  const audits = auditMarks(records, key);
  const { listings, left } = listingsSoFar(ledger, key, reading);
  const listed = (trial: StoredTrial): Partial<TrialRow> => {
    const { verdict, result } = trial;
    if (verdict === undefined || result === undefined) return {};
    const listing = listings.get(trial.key);
    if (listing) return listedOf(verdict, listing);
    // Its last attempt is not the trial, so that time stays unknown.
    if (left.has(trial.key)) return { durationMs: undefined };
    const why = reading.unreadable.get(result)?.why ?? whyUnreadable(ledger, result);
    return { durationMs: undefined, reason: why, unreadable: true };
  };
  return {
    batch: { ...batchRow(batch), set: ledger.sets.partNumbers().get(key) },
    trials: listTrials(records, key).map((trial) => ({
      ...trialRow(trial, attempts.get(trial.key), audits.get(trial.key)),
      ...listed(trial),
    })),
    fingerprints: fingerprintsOf(records, key),
    ...(left.size > 0 && { unread: left.size }),
  };
}

/** What lists show of a finished trial. */
function listedOf(verdict: TrialRecord['verdict'], listing: TrialListing): Partial<TrialRow> {
  const { startedAt, finishedAt, fromService, costUsd, otherCostUsd, totalTokens: tokens } = listing;
  const durationMs = fromService ? undefined : finishedAt - startedAt;
  return { reason: reasonOf(verdict, listing), durationMs, tokens, costUsd, otherCostUsd };
}

function whyUnreadable({ blobs }: Ledger, result: string): string | undefined {
  return readable(() => readRecord(blobs.readClean(result), 'the record')).unreadable;
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
