import type { BackoffLimits, Clock } from '../../base/clock.ts';

/**
 * Milliseconds without an answer after which an engine counts as gone, once the Offsite process is ending.
 */
const silentMs = 20_000;

/** Milliseconds between two checks. */
const lookMs = 1_000;

/** Why requests fail once the engine counts as gone. */
export class EngineSilent extends Error {
  override readonly name = 'EngineSilent';
}

/**
 * Bounds how long an ending Offsite process waits for a silent engine. A request has two minutes for its
 * answer, and the cleanup makes many requests, one after another. While the engine answers any of them, all
 * others keep their two minutes: a busy engine takes long to remove containers.
 */
export class Ending implements Disposable {
  readonly #clock: Clock;
  readonly #gone = new AbortController();
  readonly #closed = new AbortController();
  #hasBegun = false;
  #open = 0;
  #answers = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Aborts when the engine counts as gone. Then no request is sent any more. */
  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  /** Call this when the Offsite process starts to end. */
  begin(): void {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    this.#watch().catch((error: unknown) => {
      if (!this.#closed.signal.aborted) this.#gone.abort(error);
    });
  }

  /** Counts a request as waiting for its answer until the returned object is disposed. */
  request(): Disposable {
    this.#open += 1;
    return {
      [Symbol.dispose]: () => {
        this.#open -= 1;
      },
    };
  }

  /** The engine answered a request, whatever it said. */
  answered(): void {
    this.#answers += 1;
  }

  [Symbol.dispose](): void {
    this.#closed.abort();
  }

  async #watch(): Promise<void> {
    let answers = this.#answers;
    for (let silent = 0; silent < silentMs; silent += lookMs) {
      await this.#clock.sleep(lookMs, this.#closed.signal);
      if (this.#open === 0 || this.#answers !== answers) silent = 0;
      answers = this.#answers;
    }
    this.#gone.abort(new EngineSilent(`it gave no answer for ${silentMs / 1000} s, and Offsite is ending`));
  }
}

/** Milliseconds between two attempts to restore a broken connection to the engine. */
export const connectionWaits: BackoffLimits = { first: 1_000, longest: 30_000 };
