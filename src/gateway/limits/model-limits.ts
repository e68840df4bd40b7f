import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/offsite-error.ts';
import type { HttpModel } from '../../suite/model-config.ts';
import { ModelLimit } from './model-limit.ts';
import { type Learned, type LimitMove, type SharedLimit, type Turn, takeTurn } from './shared-limit.ts';

/** Keeps what the processes of a machine share: the ledger's `Limits`, or the memory of this process. */
export interface LimitStore {
  /** Replaces what is kept by what `change` returns. No other process changes it in between. */
  change(
    model: LimitedModel,
    change: (kept: SharedLimit | undefined) => { shared: SharedLimit; summary: LimitSummary },
    at: number,
  ): void;
  /** Records that the limit of a model moved. */
  moved(model: LimitedModel, move: LimitMove): void;
}

interface LimitSummary {
  limit: number;
  most: number;
  inFlight: number;
}

export interface LimitedModel {
  /** What has the limit: an address, a model of its API, and the account. */
  key: string;
  /** The name in the configuration. */
  name: string;
}

/** What has a limit of its own: an address, a model there, and an account. */
export function limitKey(name: string, { baseUrl, model = name, apiKeyEnv = '' }: HttpModel): string {
  return [baseUrl.replace(/\/+$/, ''), model, apiKeyEnv].join(' ');
}

/** The limits that adapt, of all models that this process asks. Disposing gives the permits back. */
export class ModelLimits implements Disposable {
  readonly #limits = new Map<string, ModelLimit>();
  readonly #store: LimitStore;
  readonly #clock: Clock;
  readonly #note: (message: string) => void;
  /** What is known while the store fails. */
  readonly #own = memoryStore();
  #lastReason: string | undefined;

  /** @param note called with each new reason why the limits are not shared */
  constructor(
    clock: Clock,
    store: LimitStore = memoryStore(),
    note: (message: string) => void = () => undefined,
  ) {
    this.#clock = clock;
    this.#store = store;
    this.#note = note;
  }

  /**
   * The limit of a model. Models with the same address, account and name in the API share one limit, whatever
   * their configured names.
   */
  of(name: string, config: HttpModel, most: number): ModelLimit {
    const key = limitKey(name, config);
    const known = this.#limits.get(key);
    if (known) {
      // A newer configuration may allow more or fewer.
      known.most = most;
      return known;
    }
    const turn = (turn: Turn) => this.#turn({ key, name }, turn);
    const limit = new ModelLimit(most, { clock: this.#clock, turn });
    this.#limits.set(key, limit);
    return limit;
  }

  [Symbol.dispose](): void {
    for (const limit of this.#limits.values()) limit[Symbol.dispose]();
    this.#limits.clear();
  }

  #turn(model: LimitedModel, turn: Turn) {
    try {
      const learned = turnIn(this.#store, model, turn, this.#clock.now());
      this.#lastReason = undefined;
      return learned;
    } catch (error) {
      const reason = messageOf(error);
      if (reason !== this.#lastReason)
        this.#note(`the limit of the model ${model.name} is not shared: ${reason}`);
      this.#lastReason = reason;
      return turnIn(this.#own, model, turn, this.#clock.now());
    }
  }
}

function turnIn(store: LimitStore, model: LimitedModel, turn: Turn, now: number): Learned {
  let learned: Learned | undefined;
  const change = (kept: SharedLimit | undefined) => {
    learned = takeTurn(kept, turn, now);
    const { shared, limit, most } = learned;
    const inFlight = shared.holders.reduce((sum, [, { wants }]) => sum + wants, 0);
    return { shared, summary: { limit, most, inFlight } };
  };
  store.change(model, change, now);
  // The store has called `change`, which sets `learned`.
  const done = learned as unknown as Learned;
  for (const move of done.moves) store.moved(model, move);
  return done;
}

function memoryStore(): LimitStore {
  const kept = new Map<string, SharedLimit>();
  return {
    change: ({ key }, change) => void kept.set(key, change(kept.get(key)).shared),
    moved: () => undefined,
  };
}
