import type { Clock } from '../../clock.ts';
import { type Deadline, startDeadline } from '../../deadline.ts';

/**
 * The time that the gradings of a case may take together. It begins with the first of them, so a case does
 * not pay for others that are graded before it.
 */
export class CaseTime implements Disposable {
  /** Milliseconds; infinite if there is no limit. */
  readonly limitMs: number;
  readonly #clock: Clock;
  readonly #parent: AbortSignal;
  #deadline: Deadline | undefined;

  constructor(clock: Clock, limitMs: number, parent: AbortSignal) {
    this.limitMs = limitMs;
    this.#clock = clock;
    this.#parent = parent;
  }

  /** Whether the time was used up. */
  get isOver(): boolean {
    return this.#deadline?.expired() ?? false;
  }

  /** Begins a grading. The returned signal aborts when the time is used up. Throws if it already is. */
  begin(): AbortSignal {
    const { limitMs } = this;
    if (limitMs !== Number.POSITIVE_INFINITY)
      this.#deadline ??= startDeadline(this.#clock, limitMs, this.#parent);
    const signal = this.#deadline?.signal ?? this.#parent;
    signal.throwIfAborted();
    return signal;
  }

  [Symbol.dispose](): void {
    this.#deadline?.[Symbol.dispose]();
  }
}
