import { TrialFailure } from '../failure.ts';
import type { BuildState } from './build-event.ts';
import type { ImageParts, PreparationOptions } from './image-parts.ts';
import type { Prepared } from './preparation.ts';

export interface StepHooks {
  /** To call before this process waits for another agent that builds the step. */
  waits(): void;
  /** Builds the step with a permit, and keeps what the build printed. */
  run(work: () => Promise<Prepared | undefined>): Promise<void>;
}

/**
 * Makes a step of an environment that trials share, and reports its progress. A step that failed is not
 * built again.
 *
 * @param hash of all that the step's result depends on
 */
export async function sharedStep<Made>(
  { failures, buildLogs, observeBuild }: Pick<ImageParts, 'failures' | 'buildLogs' | 'observeBuild'>,
  { hash, description, building }: { hash: string; description: string } & PreparationOptions,
  make: (hooks: StepHooks) => Promise<Made>,
): Promise<Made> {
  const failure = failures.get(hash);
  if (failure) throw failure;
  let isBuilt = false;
  const report = (state: BuildState) => {
    isBuilt = true;
    observeBuild({ id: hash, what: description, state });
  };
  try {
    const made = await make({
      waits: () => report({ kind: 'other-agent' }),
      async run(work) {
        if (building) report({ kind: 'queued' });
        using _permit = await building?.();
        report({ kind: 'running' });
        const ran = await work();
        // The log is stored before another process can use the result.
        if (ran) await buildLogs?.add(hash, ran);
      },
    });
    if (isBuilt) report({ kind: 'built' });
    return made;
  } catch (error) {
    const isFinal = error instanceof TrialFailure;
    if (isFinal) failures.set(hash, error);
    if (isBuilt) report(isFinal ? { kind: 'failed', cause: error.failure } : { kind: 'stopped' });
    throw error;
  }
}
