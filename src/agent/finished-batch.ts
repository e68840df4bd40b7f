import type { Ledger } from '../ledger/ledger.ts';
import type { CommandEntry } from '../record/harness.ts';
import { readRecord } from '../record/read-record.ts';
import type { TrialRecord } from '../record/trial-record.ts';
import type { OpenBatch, Run } from './batch-run.ts';

export interface FinishedTrial {
  run: Run;
  ordinal: number;
  /** Without the texts, which the ledger has: a batch may have very many trials. */
  result: TrialRecord;
}

export interface FinishedBatch {
  id: string;
  runs: Run[];
  trials: FinishedTrial[];
}

/**
 * A batch whose trials all have results. Throws if one has none, and `BLOB_MISSING`, `BLOB_DAMAGED` and
 * `RECORD_NEWER`.
 *
 * @param known results that this process has in memory, by trial key
 */
export function finishedBatch(
  { key, id, runs }: OpenBatch,
  { queue, blobs }: Ledger,
  known: ReadonlyMap<number, TrialRecord> = new Map(),
): FinishedBatch {
  const byKey = new Map(runs.map((run) => [run.key, run]));
  const trials = queue.ofBatch(key).map((trial): FinishedTrial => {
    const run = byKey.get(trial.run);
    if (!run) throw new Error(`the batch has no run with the key ${trial.run}`);
    if (trial.result === undefined) throw new Error(`trial ${trial.key} was left without a result`);
    const result = known.get(trial.key) ?? lightResult(readRecord(blobs.readJson(trial.result)));
    return { run, ordinal: trial.ordinal, result };
  });
  return { id, runs, trials };
}

/** A result without its large parts; numbers, names and verdicts stay. The ledger has the whole result. */
export function lightResult(result: TrialRecord): TrialRecord {
  const { trajectory, derivedTrajectory, verifySteps, validations, models, cause } = result;
  return {
    ...result,
    subject: undefined,
    events: undefined,
    harnessOutput: undefined,
    changes: undefined,
    finalMessage: undefined,
    trajectory: trajectory?.map(withoutOutput),
    derivedTrajectory: derivedTrajectory?.map(withoutOutput),
    verifySteps: verifySteps?.map((step) => ({ ...step, output: '' })),
    validations: validations?.map(({ index, name, message, exitCode, startedAt, durationMs, id }) => ({
      index,
      name,
      message,
      exitCode,
      startedAt,
      durationMs,
      id,
    })),
    models: models && { ...models, exchanges: [], connections: [] },
    cause: cause && { ...cause, output: undefined },
  };
}

function withoutOutput({ output: _, ...entry }: CommandEntry): CommandEntry {
  return entry;
}
