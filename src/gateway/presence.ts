import type { Clock } from '../base/clock.ts';
import { modelAnswers } from '../bounds/model.ts';
import { duration } from '../text/quantities.ts';

/** Milliseconds between two looks for a server that may be starting. */
const lookMs = 1_000;

/**
 * Whether the server of a model is there. A server on this machine that has never answered may be starting,
 * so its requests wait, once and for a short time; then it counts as absent until it answers. One that has
 * answered before is waited for like any model that is down.
 */
export class Presence {
  readonly #clock: Clock;
  readonly #note: (message: string) => void;
  #hasAnswered = false;
  #missedSince: number | undefined;
  #isAbsent = false;

  constructor(clock: Clock, note: (message: string) => void) {
    this.#clock = clock;
    this.#note = note;
  }

  get isAbsent(): boolean {
    return this.#isAbsent;
  }

  answered(): void {
    this.#hasAnswered = true;
    this.#isAbsent = false;
  }

  /**
   * How many milliseconds a request waits that found nobody: 0 if its model is absent. Undefined for a model
   * that has answered before.
   */
  missed(why: string): number | undefined {
    if (this.#hasAnswered) return undefined;
    const now = this.#clock.now();
    if (this.#missedSince === undefined) {
      this.#missedSince = now;
      this.#note(`${why}; waiting up to ${duration(modelAnswers.time.start)}, in case it is starting`);
    }
    this.#isAbsent ||= now - this.#missedSince >= modelAnswers.time.start;
    return this.#isAbsent ? 0 : lookMs;
  }
}
