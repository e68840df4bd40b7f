/**
 * Gives out a limited number of permits at a time, in the order of the requests. The limit may change while
 * permits are held; held permits stay valid. A request may say what it needs of something that is shared.
 */
export class Semaphore<Need = undefined> {
  #limit: number;
  readonly #held = new Set<{ need: Need }>();
  readonly #waiting = new Map<() => void, { need: Need }>();
  readonly #fits: ((held: Need[], next: Need) => boolean) | undefined;

  /** @param fits whether a request may be met beside those that hold permits */
  constructor(limit: number, fits?: (held: Need[], next: Need) => boolean) {
    this.#limit = limit;
    this.#fits = fits;
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
    return this.#held.size;
  }

  /** How many callers wait for a permit. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** The needs of the callers that hold a permit. */
  get holders(): Need[] {
    return [...this.#held].map(({ need }) => need);
  }

  /** The needs of the waiting callers, in the order in which they get their permits. */
  get line(): Need[] {
    return [...this.#waiting.values()].map(({ need }) => need);
  }

  /**
   * Resolves with a permit when one is free. Disposing the permit returns it. Rejects with the signal's
   * reason if it aborts first.
   */
  async acquire(
    signal: AbortSignal,
    ...[need]: Need extends undefined ? [] : [need: Need]
  ): Promise<Disposable> {
    signal.throwIfAborted();
    const request = { need: need as Need };
    const permit = {
      [Symbol.dispose]: () => {
        if (this.#held.delete(request)) this.#admit();
      },
    };
    if (this.#waiting.size === 0 && this.fits(request.need)) {
      this.#held.add(request);
      return permit;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const giveUp = () => {
      if (!this.#waiting.delete(resolve)) return;
      reject(signal.reason);
      // Those behind it may fit.
      this.#admit();
    };
    signal.addEventListener('abort', giveUp, { once: true });
    this.#waiting.set(resolve, request);
    this.#admit();
    await promise.finally(() => signal.removeEventListener('abort', giveUp));
    return permit;
  }

  /** Whether a request would be met now. */
  fits(need: Need): boolean {
    return this.#held.size < this.#limit && (this.#fits?.(this.holders, need) ?? true);
  }

  #admit(): void {
    for (const [admit, request] of this.#waiting) {
      if (!this.fits(request.need)) return;
      this.#waiting.delete(admit);
      this.#held.add(request);
      admit();
    }
  }
}
