import type { TrialKey } from '../ledger/batches.ts';
import { type LeftOut, type QueuedTrial, variantOf } from '../ledger/queue.ts';
import type { PhaseName } from '../trial/result.ts';
import type { TrialSpec } from '../trial/spec.ts';
import type { BatchContext } from './batch-contexts.ts';
import { maxParallelOf } from './circuits.ts';

/** A trial that runs, or soon will. */
export interface InFlight {
  trial: QueuedTrial;
  spec: Pick<TrialSpec, 'model' | 'modelConfig'>;
  state: 'looking' | 'building' | 'ready' | 'running';
}

/** With what the worker needs of it. */
export interface WorkedTrial extends InFlight {
  spec: TrialSpec;
  context: BatchContext;
  /** Aborted when a person cancels its run. */
  canceling: AbortController;
  running: Running | undefined;
  /** Whether its sandbox was started before it has a permit. */
  isAhead: boolean;
  ended: Promise<void>;
}

/** Where a running trial is. */
export interface Running {
  phase: PhaseName;
  /** When it got its permit, in monotonic milliseconds. */
  at: number;
}

/** How many requests a model takes at a time. */
interface ModelLimit {
  model: string;
  maxParallel: number | undefined;
}

/**
 * The trials that a worker has taken from the queue, and which others may join them. As many are in flight as
 * run at a time, and as many again that are ready to follow. A trial whose environment is being built, or
 * whose model is down, does not count. Of a model that takes few requests only a few trials join. So no trial
 * holds up another that could run, and memory does not grow with the queue.
 */
export class Flight<Trial extends InFlight> {
  readonly #isDown: (model: string) => boolean;
  readonly #trials = new Map<TrialKey, Trial>();
  /** The models of the variants that were looked into, by {@link variantOf}. */
  readonly #models = new Map<string, ModelLimit>();
  /** Models whose trials gave up waiting, with the reason. Their trials stay queued. */
  readonly #givenUp = new Map<string, unknown>();

  /** @param isDown whether trials of a model wait for it to come back */
  constructor(isDown: (model: string) => boolean) {
    this.#isDown = isDown;
  }

  get size(): number {
    return this.#trials.size;
  }

  get trials(): Trial[] {
    return [...this.#trials.values()];
  }

  get(key: TrialKey): Trial | undefined {
    return this.#trials.get(key);
  }

  /** Whether a trial may join. The next ask of the queue leaves its variant out where it may not. */
  hasRoomFor(trial: QueuedTrial, spec: InFlight['spec']): boolean {
    const limit = { model: spec.model, maxParallel: maxParallelOf(spec) };
    this.#models.set(variantOf(trial), limit);
    return !this.#isFull(limit);
  }

  add(one: Trial): void {
    this.#trials.set(one.trial.key, one);
  }

  remove(key: TrialKey): void {
    this.#trials.delete(key);
    if (this.#trials.size === 0) this.#models.clear();
  }

  /** How many may be taken from the queue at this concurrency. */
  room(concurrency: number): number {
    const counted = this.trials.filter(
      ({ state, spec }) => state === 'running' || (state !== 'building' && !this.#isDown(spec.model)),
    );
    return 2 * concurrency - counted.length;
  }

  /** What the queue is not asked for. */
  leftOut(): Required<Pick<LeftOut, 'trials' | 'variants'>> & { runs: number[] } {
    const building = this.trials.filter(({ state }) => state === 'building');
    const full = [...this.#models].filter(([, limit]) => this.#isFull(limit));
    return {
      trials: this.#trials.keys(),
      runs: [...new Set(building.map(({ trial }) => trial.run))],
      variants: full.map(([variant]) => variant),
    };
  }

  /** The environment of a run, by the service's id, is being built: its trials wait. */
  isBuilding(run: string): void {
    for (const one of this.trials) {
      if (one.trial.runId === run && one.state === 'looking') one.state = 'building';
    }
  }

  /** Lets no other trial of a model join: it is down for too long. */
  giveUp(model: string, error: unknown): void {
    this.#givenUp.set(model, error);
  }

  /** Why trials gave up waiting. */
  get givenUp(): unknown[] {
    return [...this.#givenUp.values()];
  }

  /**
   * Whether enough trials of a model are in flight. While it is down, one that waits for it finds out when it
   * works.
   */
  #isFull({ model, maxParallel = Number.POSITIVE_INFINITY }: ModelLimit): boolean {
    if (this.#givenUp.has(model)) return true;
    const ofModel = this.trials.filter(({ spec }) => spec.model === model);
    if (this.#isDown(model)) return ofModel.some(({ state }) => state !== 'running');
    return ofModel.length >= 2 * maxParallel;
  }
}
