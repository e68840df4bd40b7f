import type { Semaphore } from '../base/semaphore.ts';
import type { Sandboxes } from '../trial/sandboxes.ts';
import type { TrialSpec } from '../trial/spec.ts';

interface Build {
  /** Resolves when it is known whether the environment must be built. */
  decided: Promise<unknown>;
  done: Promise<void>;
}

export interface BuildParts {
  sandboxes: Pick<Sandboxes, 'prepare'>;
  /** Permits to build. An environment that exists needs none. */
  permits: Semaphore;
  /** Called when a run's environment does not exist and is about to be built. */
  onBuild?: (run: string) => void;
}

/**
 * Provides the environments of a batch's trials. The first trial of a run looks up the run's environment and
 * builds it if it does not exist; a few builds run at a time, without a trial's permit. Trials keep their
 * order, but overtake trials whose environment is being built.
 */
export class Builds {
  readonly #parts: BuildParts;
  readonly #ofRuns = new Map<string, Build>();
  #turn: Promise<unknown> = Promise.resolve();

  constructor(parts: BuildParts) {
    this.#parts = parts;
  }

  /**
   * Resolves when the trial's image exists, or cannot be built: then the trial's attempt fails with the
   * reason. All trials of a run wait for one build. Rejects only if the signal aborts; the next caller starts
   * the build again.
   */
  async ready(run: string, spec: TrialSpec, signal: AbortSignal): Promise<void> {
    const build = this.#ofRuns.get(run) ?? this.#begin(run, spec, signal);
    this.#turn = this.#turn.then(() => build.decided);
    await this.#turn;
    try {
      await build.done;
    } catch (error) {
      if (this.#ofRuns.get(run) === build) this.#ofRuns.delete(run);
      throw error;
    }
  }

  #begin(run: string, spec: TrialSpec, signal: AbortSignal): Build {
    const begun = Promise.withResolvers<void>();
    const onBuild = () => {
      begun.resolve();
      this.#parts.onBuild?.(run);
    };
    const done = this.#build(spec, signal, onBuild);
    const build = { done, decided: Promise.race([begun.promise, done.catch(() => undefined)]) };
    this.#ofRuns.set(run, build);
    return build;
  }

  async #build(spec: TrialSpec, signal: AbortSignal, onBuild: () => void): Promise<void> {
    const { sandboxes, permits } = this.#parts;
    const building = () => {
      onBuild();
      return permits.acquire(signal);
    };
    try {
      await sandboxes.prepare(spec, signal, { building });
    } catch {
      // Each trial's own attempt meets the same error, and knows its cause.
      signal.throwIfAborted();
    }
  }
}
