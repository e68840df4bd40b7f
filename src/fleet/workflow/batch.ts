import { defineQuery, defineSignal, setHandler } from '@temporalio/workflow';
import { type BatchInput, type BatchOutcome, queries, signals } from './messages.ts';
import { serve } from './serve.ts';
import { Slices } from './slices.ts';
import { Trials } from './trials.ts';

/**
 * Runs the trials of one batch: itself if they are few, otherwise in child workflows, because the history of
 * a workflow is limited. Runs in Temporal's sandbox for workflows, so it must be deterministic.
 */
export async function offsiteBatch(input: BatchInput): Promise<BatchOutcome> {
  const { trials: count, window: permits, slice } = input;
  setHandler(defineQuery<string | null>(queries.plan), () => input.plan ?? null);
  if (count > slice) {
    const slices = new Slices(input);
    setHandler(defineSignal<[number]>(signals.begun), (index) => slices.begun(index));
    await serve(slices);
    return slices.ended();
  }
  const list = { first: 0, step: 1, count };
  const trials = new Trials({ ...input, list, permits, isPaused: false, awaits: false });
  await serve(trials);
  return trials.ended();
}
