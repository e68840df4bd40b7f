interface Waiting {
  enter(): void;
}

/**
 * Lets so many in at a time, in the order in which they came. The limit may change while some are inside:
 * those stay.
 */
export class Gate {
  #limit: number;
  #inside = 0;
  readonly #waiting = new Set<Waiting>();

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

  get inside(): number {
    return this.#inside;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * Resolves once there is room; disposing what it resolves with makes room again. Rejects with the signal's
   * reason when it aborts first.
   */
  enter(signal: AbortSignal): Promise<Disposable> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const leaveQueue = () => {
        this.#waiting.delete(waiting);
        reject(signal.reason);
      };
      const waiting: Waiting = {
        enter: () => {
          signal.removeEventListener('abort', leaveQueue);
          resolve(this.#place());
        },
      };
      signal.addEventListener('abort', leaveQueue, { once: true });
      this.#waiting.add(waiting);
      this.#admit();
    });
  }

  #place(): Disposable {
    let left = false;
    return {
      [Symbol.dispose]: () => {
        if (left) return;
        left = true;
        this.#inside--;
        this.#admit();
      },
    };
  }

  #admit(): void {
    for (const waiting of this.#waiting) {
      if (this.#inside >= this.#limit) return;
      this.#waiting.delete(waiting);
      this.#inside++;
      waiting.enter();
    }
  }
}
