import {
  CancellationScope,
  defineQuery,
  defineSignal,
  getExternalWorkflowHandle,
  isCancellation,
  setHandler,
  sleep,
  workflowInfo,
} from '@temporalio/workflow';
import {
  type BatchOutcome,
  type BatchProgress,
  type Pass,
  queries,
  type SliceInput,
  signals,
  type TrialSummary,
} from './messages.ts';
import { Trials } from './trials.ts';

/** Milliseconds until a workflow that is not there yet gets the signal again. */
const againMs = 1_000;

/** Runs one part of a batch's trials. The batch's own workflow starts it. */
export async function offsiteSlice(input: SliceInput): Promise<BatchOutcome> {
  const { next, index } = input;
  const { parent } = workflowInfo();
  const trials = new Trials({
    ...input,
    pass: next === undefined ? undefined : (what) => signalWorkflow(next, signals.pass, what),
    begun: parent && (() => signalWorkflow(parent.workflowId, signals.begun, index)),
  });
  setHandler(defineSignal<[Pass]>(signals.pass), (what) => trials.receive(what));
  await serve(trials);
  return trials.ended();
}

/** Signals another workflow. The next slice may not be there yet if this one is short. */
async function signalWorkflow<What>(workflow: string, signal: string, what: What): Promise<void> {
  for (;;) {
    try {
      await getExternalWorkflowHandle(workflow).signal<[What]>(signal, what);
      return;
    } catch (error) {
      if (isCancellation(error)) throw error;
      await sleep(againMs);
    }
  }
}

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
