import type { Sandboxes } from '../trial/sandboxes.ts';
import type { TrialSpec } from '../trial/spec.ts';
import type { Gate } from './gate.ts';

interface Build {
  /** Resolves once it is known whether there is anything to build. */
  decided: Promise<unknown>;
  done: Promise<void>;
}

/**
 * The environments of a batch's trials: each is looked for when its first trial is, and built outside the slots, a few at a time,
 * where it is not there. Trials go on in the order in which they came, except that those whose environment is being built are overtaken.
 */
export class Builds {
  readonly #sandboxes: Pick<Sandboxes, 'prepare'>;
  readonly #gate: Gate;
  readonly #signal: AbortSignal;
  readonly #ofRuns = new Map<string, Build>();
  #turn: Promise<unknown> = Promise.resolve();

  /** @param gate how many are built at a time */
  constructor(sandboxes: Pick<Sandboxes, 'prepare'>, gate: Gate, signal: AbortSignal) {
    this.#sandboxes = sandboxes;
    this.#gate = gate;
    this.#signal = signal;
  }

  /** Resolves when the trial's image is there, or cannot be: its own attempt says why, then. All trials of a run wait for one build. */
  async ready(run: string, spec: TrialSpec): Promise<void> {
    const build = this.#ofRuns.get(run) ?? this.#begin(run, spec);
    this.#turn = this.#turn.then(() => build.decided);
    await this.#turn;
    await build.done;
  }

  #begin(run: string, spec: TrialSpec): Build {
    const begun = Promise.withResolvers<void>();
    const building = () => {
      begun.resolve();
      return this.#gate.enter(this.#signal);
    };
    const done = this.#sandboxes.prepare(spec, this.#signal, { building }).catch(() => {
      // Each trial's own attempt meets the same, and knows whose trouble it is.
      this.#signal.throwIfAborted();
    });
    const build = { done, decided: Promise.race([begun.promise, done.catch(() => undefined)]) };
    this.#ofRuns.set(run, build);
    return build;
  }
}
