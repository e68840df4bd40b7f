import { readPlan } from '../../agent/batch-run.ts';
import type { FinishedBatch } from '../../agent/finished-batch.ts';
import { OffsiteError } from '../../base/offsite-error.ts';
import { printedText } from '../../bounds/anyone.ts';
import type { StoredBatch, StoredRun } from '../../ledger/batches.ts';
import { type ListedTrial, listAttempts, listRuns, listTrials } from '../../ledger/find.ts';
import { labelOf } from '../../ledger/find-target.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { listingOf } from '../../record/listing.ts';
import { readRecord } from '../../record/read-record.ts';
import type { TrialRecord } from '../../record/trial-record.ts';
import { cut } from '../../text/printable.ts';
import {
  type BatchSummary,
  type ShownArtifact,
  type ShownAttempt,
  type StoredBlob,
  type SummarizedBatch,
  summarizedBatch,
  summaryOf,
  type TrialDetails,
  textsOf,
} from './summary.ts';

/** A finished trial with its record, or why the record cannot be read. */
type ReadTrial = { trial: ListedTrial } & ({ record: TrialRecord } | { unreadable: string });

/**
 * The record of a finished trial. Throws `BLOB_MISSING`, `BLOB_DAMAGED`, `RECORD_NEWER`, `RECORD_UNREADABLE`.
 */
export function recordOfTrial({ blobs }: Ledger, trial: ListedTrial): TrialRecord {
  const { result = '', ordinal } = trial;
  return readRecord(blobs.readClean(result), `the record of ${labelOf(trial)}#${ordinal}`);
}

export function readTrial(ledger: Ledger, trial: ListedTrial): ReadTrial {
  try {
    return { trial, record: recordOfTrial(ledger, trial) };
  } catch (error) {
    if (!(error instanceof OffsiteError)) throw error;
    return { trial, unreadable: error.message };
  }
}

/**
 * A batch as the ledger has it, from the records of its trials. Trials whose records cannot be read are left
 * out.
 *
 * @param run set to read only this run
 * @param details whether each trial has the details for a JSON document
 */
export function storedBatch(
  ledger: Ledger,
  batch: StoredBatch,
  { run, details = true }: { run?: Pick<StoredRun, 'id'> | undefined; details?: boolean } = {},
): SummarizedBatch {
  function* trials(): SummarizedBatch['trials'] {
    for (const trial of listTrials(ledger.records, batch.key)) {
      const { runId, ordinal, verdict, result } = trial;
      if (result === undefined || verdict === undefined || (run && run.id !== runId)) continue;
      const read = readTrial(ledger, trial);
      if ('unreadable' in read) continue;
      const { record } = read;
      const texts = { ...textsOf(record), ...(details && detailsOf(ledger, trial, record)) };
      yield { runId, ordinal, verdict, listing: listingOf(record), texts };
    }
  }
  return { id: batch.id, commit: batch.commit, runs: summarizedRuns(ledger, batch), trials: trials() };
}

/** The runs of a batch for a summary of it. */
export function summarizedRuns(ledger: Ledger, batch: StoredBatch): SummarizedBatch['runs'] {
  const models = modelsOf(ledger, batch);
  return listRuns(ledger.records, batch.key).map(({ id, caseId, variant, variantIndex = -1 }) => {
    return { id, case: caseId, variant, model: models[variantIndex] };
  });
}

/** The models of a batch's planned variants. */
function modelsOf({ blobs }: Ledger, { plan }: StoredBatch): string[] {
  if (plan === undefined) return [];
  try {
    return readPlan(blobs.readJson(plan)).variants.map(({ model }) => model);
  } catch (error) {
    if (error instanceof OffsiteError) return [];
    throw error;
  }
}

/**
 * How much a summary says. `numbers`: numbers and reasons. `texts`: also what failed steps printed. `paths`:
 * also where the records are in the data folder.
 */
export type SummaryDetail = 'numbers' | 'texts' | 'paths';

/** The results of a batch that has just finished. Only `numbers` are in memory; the ledger has the rest. */
export function finishedSummary(
  batch: FinishedBatch,
  { ledger, service }: { ledger: Ledger; service: string },
  detail: SummaryDetail,
): BatchSummary {
  const isKept = (one: StoredBatch) => one.service === service;
  const kept = detail === 'numbers' ? undefined : ledger.batches.find(batch.id).find(isKept);
  if (kept) return storedSummary(kept, ledger, detail);
  return summaryOf(summarizedBatch(batch), service, ledger.outbox.pending());
}

/** The results of a batch as the ledger has them. */
export function storedSummary(batch: StoredBatch, ledger: Ledger, detail: SummaryDetail): BatchSummary {
  const stored = storedBatch(ledger, batch, { details: detail === 'paths' });
  return summaryOf(stored, batch.service, ledger.outbox.pending());
}

function detailsOf(
  ledger: Ledger,
  { key, result = '' }: Pick<ListedTrial, 'key' | 'result'>,
  record: TrialRecord,
): TrialDetails {
  const { listed } = printedText.count;
  return {
    verifySteps: (record.verifySteps ?? []).slice(0, listed).map((step) => {
      const output = cut(step.output, printedText.bytes.logLine);
      const outputTruncated = step.outputTruncated || output !== step.output;
      const { command, exitCode, durationMs } = step;
      return { command, exitCode, durationMs, output, outputTruncated };
    }),
    artifacts: artifactsOf(ledger, record).slice(0, listed),
    attempts: attemptsOf(ledger, key),
    record: storedBlob(ledger, result),
  };
}

export function artifactsOf(
  { blobs }: Ledger,
  { artifacts = [] }: Pick<TrialRecord, 'artifacts'>,
): ShownArtifact[] {
  return artifacts.map((artifact) => ({ ...artifact, blob: blobs.pathOf(artifact.sha256) }));
}

export function attemptsOf(ledger: Ledger, trial: number): ShownAttempt[] {
  return listAttempts(ledger.records, trial).map(({ result, ...attempt }) => ({
    ...attempt,
    ...(result !== undefined && { record: storedBlob(ledger, result) }),
  }));
}

export function storedBlob({ blobs }: Ledger, sha256: string): StoredBlob {
  return { sha256, path: blobs.pathOf(sha256) };
}
