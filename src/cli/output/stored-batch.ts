import { type OpenBatch, readPlan } from '../../agent/batch-run.ts';
import { OffsiteError } from '../../base/offsite-error.ts';
import { printedText } from '../../bounds/anyone.ts';
import type { StoredBatch, StoredRun } from '../../ledger/batches.ts';
import { listRuns, listTrials } from '../../ledger/find.ts';
import { labelOf } from '../../ledger/find-target.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { listAttempts, type StoredTrial } from '../../ledger/trial-rows.ts';
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
  summaryOf,
  type TrialDetails,
  textsOf,
} from './summary.ts';

/** A finished trial with its record, or why the record cannot be read. */
type ReadTrial = { trial: StoredTrial } & ({ record: TrialRecord } | { unreadable: string });

/**
 * The record of a finished trial. Throws `BLOB_MISSING`, `BLOB_DAMAGED`, `RECORD_NEWER`, `RECORD_UNREADABLE`.
 */
export function recordOfTrial({ blobs }: Ledger, trial: StoredTrial): TrialRecord {
  const { result = '', ordinal } = trial;
  return readRecord(blobs.readClean(result), `the record of ${labelOf(trial)}#${ordinal}`);
}

export function readTrial(ledger: Ledger, trial: StoredTrial): ReadTrial {
  try {
    return { trial, record: recordOfTrial(ledger, trial) };
  } catch (error) {
    if (!(error instanceof OffsiteError)) throw error;
    return { trial, unreadable: error.message };
  }
}

interface Reading {
  /** Set to read only this run. */
  run?: Pick<StoredRun, 'id'> | undefined;
  /** Whether each trial has the details for a JSON document. */
  details?: boolean;
  /** Whether a record that cannot be read throws, as {@link recordOfTrial} does, or is left out. */
  strict?: boolean;
}

/** The results of a batch as the ledger has them, from the records of its trials. */
export function storedSummary(
  ledger: Ledger,
  batch: StoredBatch,
  { run, details = true, strict = false }: Reading = {},
): BatchSummary {
  function* trials(): SummarizedBatch['trials'] {
    for (const trial of listTrials(ledger.records, batch.key)) {
      const { runId, ordinal, verdict, result } = trial;
      if (result === undefined || verdict === undefined || (run && run.id !== runId)) continue;
      const read = strict ? { record: recordOfTrial(ledger, trial) } : readTrial(ledger, trial);
      if ('unreadable' in read) continue;
      const { record } = read;
      const texts = { ...textsOf(record), ...(details && detailsOf(ledger, trial, record)) };
      yield { runId, ordinal, verdict, listing: listingOf(record), texts };
    }
  }
  const runs = summarizedRuns(ledger, batch, run);
  const read = { id: batch.id, commit: batch.commit, runs, trials: trials() };
  return summaryOf(read, batch.service, ledger.outbox.pending());
}

/** The runs of a batch, or the wanted one, for a summary of it. */
export function summarizedRuns(
  ledger: Ledger,
  batch: StoredBatch,
  wanted: Reading['run'],
): SummarizedBatch['runs'] {
  const models = modelsOf(ledger, batch);
  return listRuns(ledger.records, batch.key)
    .filter(({ id }) => wanted === undefined || id === wanted.id)
    .map(({ id, caseId, variant, variantIndex = -1 }) => {
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

/** The results of a batch that has just finished. Throws as {@link recordOfTrial} does. */
export function finishedSummary(
  { key }: Pick<OpenBatch, 'key'>,
  { ledger }: { ledger: Ledger },
  details: boolean,
): BatchSummary {
  return storedSummary(ledger, ledger.batches.byKey(key), { details, strict: true });
}

function detailsOf(
  ledger: Ledger,
  { key, result = '' }: Pick<StoredTrial, 'key' | 'result'>,
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
