import { CancellationScope, defineQuery, defineSignal, setHandler } from '@temporalio/workflow';
import { type BatchProgress, queries, signals, type TrialSummary } from './messages.ts';

/** What runs trials and can be asked about them. */
export interface Served {
  /** Rejects if the workflow is canceled. */
  work(): Promise<void>;
  /** Resolves when no sandbox is left. */
  settled(): Promise<void>;
  pause(isPaused: boolean): void;
  progress(after: number): BatchProgress;
  outcome(trial: string): TrialSummary | null;
}

/** Works, with the signals and queries that all workflows of a batch have. */
export async function serve(served: Served): Promise<void> {
  setHandler(defineSignal(signals.pause), () => served.pause(true));
  setHandler(defineSignal(signals.unpause), () => served.pause(false));
  setHandler(defineQuery<BatchProgress, [number]>(queries.progress), (after) => served.progress(after));
  setHandler(defineQuery<TrialSummary | null, [string]>(queries.outcome), (trial) => served.outcome(trial));
  try {
    await served.work();
  } finally {
    // After a cancellation, the workflow ends when no sandbox of its trials is left.
    await CancellationScope.nonCancellable(() => served.settled());
  }
}
