import type { Clock } from '../clock.ts';

export type DeadlineCause = 'timed-out' | 'canceled';

/** A running deadline. Dispose of it when the work is done, or its timer keeps the process alive. */
export interface Deadline extends Disposable {
  /** Resolves, never rejects, once time is up or the caller's signal aborted. */
  readonly reached: Promise<DeadlineCause>;
  /** Aborts at the same moment. */
  readonly signal: AbortSignal;
}

/** Starts a deadline `ms` milliseconds from now that also ends when `signal` aborts. */
export function startDeadline(clock: Clock, ms: number, signal?: AbortSignal): Deadline {
  const timer = new AbortController();
  const both = signal ? AbortSignal.any([timer.signal, signal]) : timer.signal;
  const expired = new AbortController();
  const reached = clock.sleep(ms, both).then(
    (): DeadlineCause => 'timed-out',
    (): Promise<DeadlineCause> | DeadlineCause =>
      // Disposal also ends the timer; nobody waits then, so the promise may stay pending.
      signal?.aborted ? 'canceled' : new Promise<never>(() => undefined),
  );
  reached.then((cause) =>
    expired.abort(cause === 'canceled' ? signal?.reason : new Error(`no answer in ${ms} ms`)),
  );
  return { reached, signal: expired.signal, [Symbol.dispose]: () => timer.abort() };
}
