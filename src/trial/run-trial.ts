import type { Clock } from '../clock.ts';
import type { Runner } from '../harness/runner.ts';
import type { BlobStore } from '../ledger/blobs.ts';
import { causeOf } from './failure.ts';
import { phases } from './phases/phases.ts';
import type { PhaseName, PhaseTiming, TrialResult } from './result.ts';
import type { Sandboxes } from './sandboxes.ts';
import type { TrialSpec } from './spec.ts';

/** What a trial works with; the same for all trials of a batch. */
export interface TrialParts {
  sandboxes: Sandboxes;
  runners: readonly Runner[];
  blobs: BlobStore;
  clock: Clock;
}

/**
 * Runs one trial from its setup to its outcome. What went wrong on the way is in the result, with whose trouble it was; only an abort
 * of `signal` rejects. The sandbox is given back in any case.
 */
export async function runTrial(
  spec: TrialSpec,
  parts: TrialParts,
  signal: AbortSignal,
  onPhase: (phase: PhaseName) => void,
): Promise<TrialResult> {
  const { clock, sandboxes } = parts;
  const startedAt = clock.now();
  const timings: PhaseTiming[] = [];
  let found: Partial<TrialResult> = {};
  let phase: PhaseName = 'sandbox';

  const timed = async <Result>(name: PhaseName, work: () => Promise<Result>): Promise<Result> => {
    phase = name;
    onPhase(name);
    const begun = clock.now();
    try {
      return await work();
    } finally {
      timings.push({ name, startedAt: begun, durationMs: clock.now() - begun });
    }
  };

  try {
    const sandbox = await timed('sandbox', () => sandboxes.take(spec, signal));
    using given = new DisposableStack();
    given.defer(() => sandboxes.giveBack(sandbox));
    found = { sandboxId: sandbox.container.id };
    for (const { name, run } of phases) {
      const additions = await timed(name, () => run({ spec, parts, ...sandbox, signal, found }));
      found = { ...found, ...additions };
      if (found.verdict) break;
    }
  } catch (error) {
    signal.throwIfAborted();
    const cause = causeOf(error, phase);
    // An agent that breaks its sandbox has not earned a void.
    found = { ...found, verdict: cause.kind === 'agent' ? 'failed' : 'void', cause };
  }
  return {
    verdict: 'void',
    ...found,
    startedAt,
    finishedAt: clock.now(),
    phases: timings,
    // Without a network no model can be reached, so that its share is known to be nothing.
    modelUnmeasured: spec.sandbox.network === 'open',
  };
}
