import type { Clock } from '../../clock.ts';
import type { Watchdog } from './watchdog.ts';

/** Milliseconds until a loop goes on after a step of it failed. */
const pauseMs = 5_000;

export interface LoopParts {
  name: string;
  clock: Clock;
  watchdog: Watchdog;
  /** Milliseconds that one step may take. */
  stepMs: number;
  /** One round of the work. Resolves with the milliseconds until the next one, unless the loop is woken before. */
  step(signal: AbortSignal): Promise<number>;
  /** Told of a step that failed; the loop goes on. */
  failed(error: unknown): void;
}

/** One concern of the daemon, again and again until it is stopped. */
export class Loop {
  readonly #parts: LoopParts;
  #woken = Promise.withResolvers<void>();

  constructor(parts: LoopParts) {
    this.#parts = parts;
  }

  /** Has the next round begin at once. */
  wake(): void {
    this.#woken.resolve();
  }

  /** Resolves once the signal has aborted and the step under way has ended. */
  async run(signal: AbortSignal): Promise<void> {
    const { name, watchdog, stepMs } = this.#parts;
    const beat = watchdog.loop(name);
    while (!signal.aborted) {
      this.#woken = Promise.withResolvers<void>();
      beat(stepMs);
      const waitMs = await this.#step(signal);
      beat(waitMs);
      await this.#wait(waitMs, signal);
    }
    watchdog.ended(name);
  }

  async #step(signal: AbortSignal): Promise<number> {
    try {
      return await this.#parts.step(signal);
    } catch (error) {
      if (!signal.aborted) this.#parts.failed(error);
      return pauseMs;
    }
  }

  async #wait(ms: number, signal: AbortSignal): Promise<void> {
    if (ms <= 0) return;
    const over = new AbortController();
    const end = () => over.abort();
    signal.addEventListener('abort', end, { once: true });
    const sleeping = this.#parts.clock.sleep(ms, over.signal).catch((error: unknown) => {
      if (!over.signal.aborted) throw error;
    });
    try {
      if (!signal.aborted) await Promise.race([sleeping, this.#woken.promise]);
    } finally {
      signal.removeEventListener('abort', end);
      over.abort();
      await sleeping;
    }
  }
}
