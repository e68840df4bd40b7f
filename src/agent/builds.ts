import type { TrialSpec } from '../trial/spec.ts';
import { buildImage, type ImageBuilding } from './build-image.ts';

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
  readonly #building: ImageBuilding;
  readonly #ofRuns = new Map<string, Build>();
  #turn: Promise<unknown> = Promise.resolve();

  constructor(building: ImageBuilding) {
    this.#building = building;
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
    const done = buildImage(spec, { ...this.#building, onBuild: begun.resolve });
    const build = { done, decided: Promise.race([begun.promise, done.catch(() => undefined)]) };
    this.#ofRuns.set(run, build);
    return build;
  }
}
