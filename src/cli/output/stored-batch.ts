import type { FinishedBatch } from '../../agent/finished-batch.ts';
import { readPlan } from '../../agent/stored-plan.ts';
import type { StoredBatch } from '../../ledger/batches.ts';
import { type ListedTrial, listRuns, listTrials } from '../../ledger/find.ts';
import { labelOf } from '../../ledger/find-target.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { OffsiteError } from '../../offsite-error.ts';
import { readRecord } from '../../record/read-record.ts';
import type { TrialRecord } from '../../record/trial-record.ts';
import { type BatchSummary, type SummarizedBatch, summarizedBatch, summaryOf } from './summary.ts';
import { detailsOf } from './trial-details.ts';

/** A finished trial with its record, or why the record cannot be read. */
export type ReadTrial = { trial: ListedTrial } & ({ record: TrialRecord } | { unreadable: string });

/**
 * The record of a finished trial. Throws `BLOB_MISSING`, `BLOB_DAMAGED`, `RECORD_NEWER`, `RECORD_UNREADABLE`.
 */
export function recordOfTrial({ blobs }: Ledger, trial: ListedTrial): TrialRecord {
  const { result = '', ordinal } = trial;
  return readRecord(blobs.readClean(result), `the record of ${labelOf(trial)}#${ordinal}`);
}

/** The wanted finished trials of a batch with their records, one by one. */
function* readTrials(
  ledger: Ledger,
  batch: StoredBatch,
  isWanted: (trial: ListedTrial) => boolean,
): Generator<ReadTrial> {
  for (const trial of listTrials(ledger.records, batch.key)) {
    if (trial.result === undefined || !isWanted(trial)) continue;
    try {
      yield { trial, record: recordOfTrial(ledger, trial) };
    } catch (error) {
      if (!(error instanceof OffsiteError)) throw error;
      yield { trial, unreadable: error.message };
    }
  }
}

/**
 * A batch as the ledger has it, with the details of each trial. Trials whose records cannot be read are left
 * out.
 *
 * @param isWanted which trials to read
 * @param visit sees each trial as it is read
 */
export function storedBatch(
  ledger: Ledger,
  batch: StoredBatch,
  isWanted: (trial: ListedTrial) => boolean = () => true,
  visit: (read: ReadTrial) => void = () => undefined,
): SummarizedBatch {
  const models = modelsOf(ledger, batch);
  function* trials(): SummarizedBatch['trials'] {
    for (const read of readTrials(ledger, batch, isWanted)) {
      visit(read);
      if ('unreadable' in read) continue;
      const { trial, record } = read;
      const details = detailsOf(ledger, trial, record);
      yield { runId: trial.runId, ordinal: trial.ordinal, result: record, details };
    }
  }
  return {
    id: batch.id,
    runs: listRuns(ledger.records, batch.key).map(({ id, caseId, variant, variantIndex = -1 }) => {
      return { id, case: caseId, variant, model: models[variantIndex] };
    }),
    trials: trials(),
  };
}

/** The models of a batch's planned variants. */
function modelsOf({ blobs }: Ledger, { plan }: StoredBatch): string[] {
  if (plan === undefined) return [];
  try {
    return readPlan(blobs.readJson(plan)).plan.variants.map(({ model }) => model);
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
  const stored = storedBatch(ledger, batch);
  const trials = detail === 'paths' ? stored.trials : withoutDetails(stored.trials);
  return summaryOf({ ...stored, trials }, batch.service, ledger.outbox.pending());
}

function* withoutDetails(trials: SummarizedBatch['trials']): SummarizedBatch['trials'] {
  for (const { details: _, ...trial } of trials) yield trial;
}
