import type { Clock } from '../base/clock.ts';
import { startDeadline } from '../base/deadline.ts';

/** Milliseconds until a loop continues after a step failed. */
const pauseMs = 5_000;

export interface LoopParts {
  name: string;
  clock: Clock;
  watchdog?: Watchdog | undefined;
  /** Milliseconds that one step may take, for the watchdog. Default: any time. */
  stepMs?: number;
  /** Milliseconds until the first round. Default: 0. */
  firstMs?: number;
  /**
   * One round of the work. Resolves with the milliseconds until the next round; `wake` may start it earlier.
   */
  step(signal: AbortSignal): Promise<number>;
  /**
   * Called when a step fails. The loop continues after a pause, unless this throws. Without it, the loop ends
   * with the error.
   */
  failed?(error: unknown): void;
}

/** Repeats one kind of work until it is stopped. */
export class Loop {
  readonly #parts: LoopParts;
  #woken = Promise.withResolvers<void>();

  constructor(parts: LoopParts) {
    this.#parts = parts;
  }

  /** Starts the next round at once. */
  wake(): void {
    this.#woken.resolve();
  }

  /**
   * Resolves once the signal has aborted and the current step has ended. Rejects with what `failed` throws,
   * or with a step's error if there is no `failed`. The error of a step that fails after the abort is
   * dropped.
   */
  async run(signal: AbortSignal): Promise<void> {
    const { name, watchdog, stepMs = Number.POSITIVE_INFINITY, firstMs = 0 } = this.#parts;
    const beat = watchdog?.loop(name);
    if (firstMs > 0) {
      beat?.(firstMs);
      await this.#wait(firstMs, signal);
    }
    while (!signal.aborted) {
      this.#woken = Promise.withResolvers<void>();
      beat?.(stepMs);
      const waitMs = await this.#step(signal);
      beat?.(waitMs);
      await this.#wait(waitMs, signal);
    }
    watchdog?.ended(name);
  }

  async #step(signal: AbortSignal): Promise<number> {
    try {
      return await this.#parts.step(signal);
    } catch (error) {
      if (signal.aborted) return pauseMs;
      if (!this.#parts.failed) throw error;
      this.#parts.failed(error);
      return pauseMs;
    }
  }

  async #wait(ms: number, signal: AbortSignal): Promise<void> {
    if (ms <= 0 || signal.aborted) return;
    using deadline = startDeadline(this.#parts.clock, ms, signal);
    await Promise.race([deadline.reached, this.#woken.promise]);
  }
}

/** Milliseconds that a loop may be late on a busy machine before it counts as stuck. */
const latenessMs = 60_000;

/** A loop calls this to say that it is alive, and that it calls again within the given milliseconds. */
type Beat = (withinMs: number) => void;

/**
 * Knows which loops are overdue. It uses a monotonic clock, so a wall clock that jumps makes no loop look
 * stuck.
 */
export class Watchdog {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #due = new Map<string, number>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** Watches a loop from its first beat. */
  loop(name: string): Beat {
    return (withinMs) => this.#due.set(name, this.#clock.monotonic() + withinMs + latenessMs);
  }

  /** Forgets a loop that has ended. */
  ended(name: string): void {
    this.#due.delete(name);
  }

  /** The names of the loops that are stuck. */
  stuck(): string[] {
    const now = this.#clock.monotonic();
    return [...this.#due].filter(([, due]) => due < now).map(([name]) => name);
  }
}
