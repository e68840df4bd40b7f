import {
  defineSignal,
  getExternalWorkflowHandle,
  isCancellation,
  setHandler,
  sleep,
  workflowInfo,
} from '@temporalio/workflow';
import { type BatchOutcome, type Pass, type SliceInput, signals } from './messages.ts';
import { serve } from './serve.ts';
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
