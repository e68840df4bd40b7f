/**
 * Gives out a limited number of permits at a time, in the order of the requests. The limit may change while
 * permits are held; held permits stay valid.
 */
export class Semaphore {
  #limit: number;
  #held = 0;
  readonly #waiting = new Set<() => void>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  get limit(): number {
    return this.#limit;
  }

  set limit(limit: number) {
    this.#limit = limit;
    this.#admit();
  }

  /** How many permits are held. */
  get held(): number {
    return this.#held;
  }

  /** How many callers wait for a permit. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * Resolves with a permit when one is free. Disposing the permit returns it. Rejects with the signal's
   * reason if it aborts first.
   */
  async acquire(signal: AbortSignal): Promise<Disposable> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const giveUp = () => {
      if (this.#waiting.delete(resolve)) reject(signal.reason);
    };
    signal.addEventListener('abort', giveUp, { once: true });
    this.#waiting.add(resolve);
    this.#admit();
    await promise.finally(() => signal.removeEventListener('abort', giveUp));
    return this.#permit();
  }

  #permit(): Disposable {
    let isHeld = true;
    return {
      [Symbol.dispose]: () => {
        if (!isHeld) return;
        isHeld = false;
        this.#held -= 1;
        this.#admit();
      },
    };
  }

  #admit(): void {
    for (const admit of this.#waiting) {
      if (this.#held >= this.#limit) return;
      this.#waiting.delete(admit);
      this.#held += 1;
      admit();
    }
  }
}
