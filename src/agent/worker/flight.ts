import type { RunKey, TrialKey } from '../../ledger/batches.ts';
import { type ExcludedTrials, variantOf } from '../../ledger/queue.ts';
import type { StoredTrial } from '../../ledger/trial-rows.ts';
import type { PhaseName } from '../../record/cause.ts';
import type { TrialSpec } from '../../trial/spec.ts';
import type { EngineContext } from '../batch-contexts.ts';
import { maxParallelOf } from '../circuits.ts';
import type { Lease } from '../claims.ts';
import type { PooledEngine } from '../engines/engines.ts';

/** A trial that runs, or soon will, with what the worker needs to run it. */
export interface WorkedTrial {
  trial: StoredTrial;
  spec: TrialSpec;
  state: 'looking' | 'building' | 'ready' | 'running';
  /**
   * The engine that the trial runs on or will run on, and what trials share there. Undefined until one is
   * chosen.
   */
  at: { pooled: PooledEngine; context: EngineContext } | undefined;
  /** Aborted when a person cancels its run. */
  canceling: AbortController;
  running: Running | undefined;
  /** Whether the trial was claimed before it has a permit, or it is too late for that. */
  triedAhead: boolean;
  /** The lease of a trial that was claimed ahead, until it has its permit. */
  lease: Promise<Lease> | undefined;
  ended: Promise<void>;
}

/** Where a running trial is. */
interface Running {
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
 * Holds the trials that a worker has taken from the queue, and decides which others may join them. At most
 * twice the concurrency is in flight: half to run, half to follow. A trial does not count while its
 * environment is being built or its model is down. If a model takes few requests at a time, only a few of
 * its trials may join. So no trial holds up another that could run, and the number of trials that the worker
 * keeps does not grow with the queue.
 */
export class Flight {
  readonly #isDown: (model: string) => boolean;
  readonly #trials = new Map<TrialKey, WorkedTrial>();
  /** The models of the variants seen so far, by {@link variantOf}. */
  readonly #models = new Map<string, ModelLimit>();
  /** The models, and the runs, whose trials gave up waiting, with the reason. Their trials stay queued. */
  readonly #givenUp = new Map<string | RunKey, unknown>();

  /** @param isDown whether trials of a model wait until it works again */
  constructor(isDown: (model: string) => boolean) {
    this.#isDown = isDown;
  }

  get size(): number {
    return this.#trials.size;
  }

  get trials(): WorkedTrial[] {
    return [...this.#trials.values()];
  }

  get(key: TrialKey): WorkedTrial | undefined {
    return this.#trials.get(key);
  }

  /** Whether a trial may join. If not, {@link leftOut} names its variant from now on. */
  hasRoomFor(trial: StoredTrial, spec: Pick<TrialSpec, 'model' | 'modelConfig'>): boolean {
    const limit = { model: spec.model, maxParallel: maxParallelOf(spec) };
    this.#models.set(variantOf(trial), limit);
    return !this.#isFull(limit);
  }

  add(one: WorkedTrial): void {
    this.#trials.set(one.trial.key, one);
  }

  remove(key: TrialKey): void {
    this.#trials.delete(key);
    if (this.#trials.size === 0) this.#models.clear();
  }

  /** How many more trials the worker may take from the queue at this concurrency. */
  room(concurrency: number): number {
    const counted = this.trials.filter(
      ({ state, spec }) => state === 'running' || (state !== 'building' && !this.#isDown(spec.model)),
    );
    return 2 * concurrency - counted.length;
  }

  /** What the worker does not ask the queue for now. */
  leftOut(): Required<Pick<ExcludedTrials, 'trials' | 'variants'>> & { runs: number[] } {
    const building = this.trials.filter(({ state }) => state === 'building').map(({ trial }) => trial.run);
    const givenUp = [...this.#givenUp.keys()].filter((what) => typeof what === 'number');
    const full = [...this.#models].filter(([, limit]) => this.#isFull(limit));
    return {
      trials: this.#trials.keys(),
      runs: [...new Set([...building, ...givenUp])],
      variants: full.map(([variant]) => variant),
    };
  }

  /**
   * Notes that the environment of a run is being built, so that its trials wait.
   *
   * @param run the service's id
   */
  markBuilding(run: string): void {
    for (const one of this.trials) {
      if (one.trial.runId === run && one.state === 'looking') one.state = 'building';
    }
  }

  /** Lets no other trial of a model, or of a run, join: the model or its engine is down for too long. */
  giveUp(what: string | RunKey, error: unknown): void {
    this.#givenUp.set(what, error);
  }

  /** Why trials gave up waiting. */
  get givenUp(): unknown[] {
    return [...this.#givenUp.values()];
  }

  /**
   * Whether enough trials of a model are in flight. While the model is down, one waiting trial is enough: it
   * finds out when the model works again.
   */
  #isFull({ model, maxParallel = Number.POSITIVE_INFINITY }: ModelLimit): boolean {
    if (this.#givenUp.has(model)) return true;
    const ofModel = this.trials.filter(({ spec }) => spec.model === model);
    if (this.#isDown(model)) return ofModel.some(({ state }) => state !== 'running');
    return ofModel.length >= 2 * maxParallel;
  }
}
