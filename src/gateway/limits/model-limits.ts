import type { Clock } from '../../base/clock.ts';
import { Semaphore } from '../../base/semaphore.ts';
import type { HttpModel } from '../../suite/model-config.ts';
import { type LimitEvent, newLimit, observe } from './limit-law.ts';

/** The permits of this process for requests to one model whose limit adapts. */
export class ModelLimit {
  /** The name of the model in the configuration. */
  readonly name: string;
  readonly #clock: Clock;
  readonly #permits: Semaphore;
  readonly #listeners = new Set<(limit: number) => void>();
  readonly #state;
  #most: number;
  #sent = 0;

  /** @param most requests in flight, as configured */
  constructor(name: string, most: number, clock: Clock) {
    this.name = name;
    this.#clock = clock;
    this.#most = most;
    this.#state = newLimit(most, clock.now());
    this.#permits = new Semaphore(this.limit);
  }

  /** Requests that may be in flight now. */
  get limit(): number {
    return Math.min(this.#most, this.#state.limit);
  }

  /** Requests in flight or waiting. */
  get wanted(): number {
    return this.#permits.held + this.#permits.waiting;
  }

  /** The most requests in flight, as configured. */
  get most(): number {
    return this.#most;
  }

  set most(most: number) {
    this.#most = most;
    this.#move();
  }

  /** Calls the listener when the limit has moved. */
  onMove(listener: (limit: number) => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  /** Resolves with a permit when one is free. Rejects with the signal's reason if it aborts first. */
  acquire(signal: AbortSignal): Promise<Disposable> {
    return this.#permits.acquire(signal);
  }

  /** Counts a request as sent. Returns how many are in flight. */
  send(): number {
    this.#sent += 1;
    return this.#sent;
  }

  /** Counts a request as over. */
  over(): void {
    this.#sent -= 1;
  }

  observe(event: LimitEvent): void {
    observe(this.#state, event, { most: this.#most, now: this.#clock.now() });
    this.#move();
  }

  #move(): void {
    const { limit } = this;
    if (limit === this.#permits.limit) return;
    this.#permits.limit = limit;
    for (const listener of this.#listeners) listener(limit);
  }
}

/** The limits that adapt, of all models that this process asks. */
export class ModelLimits {
  readonly #limits = new Map<string, ModelLimit>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * The limit of a model. Models with the same address, account and name in the API have one limit, whatever
   * their configured names.
   */
  of(name: string, { baseUrl, model = name, apiKeyEnv = '' }: HttpModel, most: number): ModelLimit {
    const key = [baseUrl.replace(/\/+$/, ''), model, apiKeyEnv].join(' ');
    const known = this.#limits.get(key);
    if (known) {
      // A newer configuration may allow more or fewer.
      known.most = most;
      return known;
    }
    const limit = new ModelLimit(name, most, this.#clock);
    this.#limits.set(key, limit);
    return limit;
  }

  /** The limits of the models that have been asked. */
  all(): ModelLimit[] {
    return [...this.#limits.values()];
  }
}
