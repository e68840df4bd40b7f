import type { Sandboxes } from '../trial/sandboxes.ts';
import type { TrialSpec } from '../trial/spec.ts';
import type { Gate } from './gate.ts';

interface Build {
  /** Resolves once it is known whether there is anything to build. */
  decided: Promise<unknown>;
  done: Promise<void>;
}

export interface BuildParts {
  sandboxes: Pick<Sandboxes, 'prepare'>;
  /** How many are built at a time. What is there already waits for none. */
  gate: Gate;
  /** Told when a run's environment is not there and is going to be built. */
  onBuild?: (run: string) => void;
}

/**
 * The environments of a batch's trials. Each is looked for when its first trial is, and built once, a few at
 * a time, where it is not there. A build takes no slot. Trials keep the order in which they came, but
 * overtake those whose environment is being built.
 */
export class Builds {
  readonly #parts: BuildParts;
  readonly #ofRuns = new Map<string, Build>();
  #turn: Promise<unknown> = Promise.resolve();

  constructor(parts: BuildParts) {
    this.#parts = parts;
  }

  /**
   * Resolves when the trial's image is there, or cannot be made: the trial's own attempt says why, then. All
   * trials of a run wait for one build. Rejects only where the signal aborts; the next to ask starts the
   * build again.
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
    const { sandboxes, gate } = this.#parts;
    const building = () => {
      onBuild();
      return gate.enter(signal);
    };
    try {
      await sandboxes.prepare(spec, signal, { building });
    } catch {
      // Each trial's own attempt meets the same, and knows whose trouble it is.
      signal.throwIfAborted();
    }
  }
}
