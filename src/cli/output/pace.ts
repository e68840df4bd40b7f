/** The trials that have not finished. */
export interface Unfinished {
  /** Trials that have not begun. */
  waiting: number;
  /** How long each running trial has run. */
  runningMs: readonly number[];
}

/**
 * Estimates when all trials have finished: from how long finished trials took, and how many ran at a time. It
 * knows nothing before the first trial has finished.
 */
export class Pace {
  #finished = 0;
  #finishedMs = 0;
  /** Milliseconds since the first trial began, without those in which the work was stopped. */
  #spanMs = 0;
  /** The milliseconds that trials ran during that time, summed over the trials. */
  #busyMs = 0;
  #at = 0;

  /** Notes how many trials have run since the last call. Call this before that number changes. */
  pass(now: number, { running, isStopped }: { running: number; isStopped: boolean }): void {
    const ms = Math.max(0, now - this.#at);
    this.#at = now;
    if (isStopped || (running === 0 && this.#busyMs === 0)) return;
    this.#spanMs += ms;
    this.#busyMs += ms * running;
  }

  finished(ms: number): void {
    this.#finished++;
    this.#finishedMs += ms;
  }

  /** Milliseconds until the last trial has finished; undefined if nothing is known. */
  left({ waiting, runningMs }: Unfinished): number | undefined {
    if (this.#finished === 0 || this.#spanMs === 0) return undefined;
    const soFar = this.#finishedMs / this.#finished;
    // Short trials finish first, so a trial that already runs for longer counts too.
    const longer = runningMs.filter((ms) => ms > soFar);
    const known = this.#finishedMs + longer.reduce((sum, ms) => sum + ms, 0);
    const mean = known / (this.#finished + longer.length);
    const rest = runningMs.map((ms) => Math.max(0, mean - ms));
    const work = waiting * mean + rest.reduce((sum, ms) => sum + ms, 0);
    const atATime = Math.max(1, Math.min(this.#busyMs / this.#spanMs, waiting + runningMs.length));
    const left = Math.max(work / atATime, ...rest);
    return left > 0 ? left : undefined;
  }
}
