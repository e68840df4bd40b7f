import type { Clock } from '../base/clock.ts';
import type { PhaseName } from '../record/cause.ts';
import type { PhaseTiming } from '../record/trial-record.ts';

/** Runs the phases of a trial, and keeps how long each one took. */
export class PhaseTimer {
  readonly timings: PhaseTiming[] = [];
  readonly #clock: Clock;
  readonly #onPhase: (phase: PhaseName) => void;
  #current: PhaseName = 'sandbox';

  /** @param onPhase called when a phase begins */
  constructor(clock: Clock, onPhase: (phase: PhaseName) => void) {
    this.#clock = clock;
    this.#onPhase = onPhase;
  }

  /** The phase that began last. */
  get current(): PhaseName {
    return this.#current;
  }

  /** @param step the step of the trial that the phase is part of, if the trial has several */
  async run<Result>(name: PhaseName, work: () => Promise<Result>, step?: string): Promise<Result> {
    this.#current = name;
    this.#onPhase(name);
    const startedAt = this.#clock.now();
    try {
      return await work();
    } finally {
      const durationMs = this.#clock.now() - startedAt;
      this.timings.push({ name, ...(step !== undefined && { step }), startedAt, durationMs });
    }
  }
}
