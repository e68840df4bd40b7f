import type { QueuedTrial } from '../../ledger/queue.ts';
import type { PhaseName } from '../../trial/result.ts';
import type { Sandboxes } from '../../trial/sandboxes.ts';
import type { TrialSpec } from '../../trial/spec.ts';
import type { RunningTrial } from './status.ts';

/** A trial that runs, or will have a place before long. */
export interface InHand {
  trial: QueuedTrial;
  spec: TrialSpec;
  sandboxes: Sandboxes;
  /** Aborted when a person cancels its run. */
  canceling: AbortController;
  /** Undefined while it waits for its place. `at` is monotonic, in milliseconds. */
  begun: { phase: PhaseName; at: number } | undefined;
  /** Whether its sandbox was started before it has its place. */
  isAhead: boolean;
  ended: Promise<void>;
}

/** What a trial is called in the log. */
export function namesOf({ batchId, runId, caseId, ordinal }: QueuedTrial) {
  return { batch: batchId, run: runId, case: caseId, trial: ordinal };
}

/** As the status shows it; undefined while it waits for its place. */
export function runningTrial({ trial, begun }: InHand, now: number): RunningTrial | undefined {
  if (!begun) return undefined;
  const { batchId, runId, caseId, ordinal } = trial;
  const { phase, at } = begun;
  return { batch: batchId, run: runId, case: caseId, ordinal, phase, forMs: Math.round(now - at) };
}
