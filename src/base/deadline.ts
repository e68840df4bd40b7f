import type { Clock } from './clock.ts';

export type DeadlineCause = 'timed-out' | 'canceled';

/**
 * A running deadline. Dispose of it when the work is done: that stops its timer, which would keep the process
 * alive, and its listeners on the parent signals.
 */
export interface Deadline extends Disposable {
  /** Aborts when time is up, or when a parent aborts, with the parent's reason. */
  readonly signal: AbortSignal;
  /** Resolves when `signal` aborts. Never rejects, and stays pending after disposal. */
  readonly reached: Promise<DeadlineCause>;
  /** Whether time was up before a parent aborted. */
  expired(): boolean;
  /**
   * Call this when something arrived: once the present `ms` are over, they begin again. So the deadline
   * passes after nothing has arrived for at least `ms` and at most twice as long.
   */
  renew(): void;
}

/** Stops a timer. A trial stops dozens, and without a reason each makes an error with its own stack. */
const done = new Error('the work is done');

/**
 * Starts a deadline `ms` milliseconds from now that also ends when one of `parents` aborts.
 * (`AbortSignal.any` with `AbortSignal.timeout` does not work here, because the caller passes the clock.)
 *
 * @param reason makes the reason of the signal when time is up
 */
export function startDeadline(
  clock: Clock,
  ms: number,
  parents: AbortSignal | undefined | readonly (AbortSignal | undefined)[] = [],
  reason: () => Error = () => new Error(`no answer in ${ms} ms`),
): Deadline {
  const controller = new AbortController();
  const timer = new AbortController();
  const { promise: reached, resolve } = Promise.withResolvers<DeadlineCause>();
  let expired = false;
  let renewed = false;
  const detach: (() => void)[] = [];

  for (const parent of [parents].flat()) {
    if (!parent) continue;
    const follow = () => {
      controller.abort(parent.reason);
      resolve('canceled');
    };
    if (parent.aborted) follow();
    parent.addEventListener('abort', follow, { once: true });
    detach.push(() => parent.removeEventListener('abort', follow));
  }
  const untilQuiet = async () => {
    do {
      renewed = false;
      await clock.sleep(ms, timer.signal);
    } while (renewed);
  };
  untilQuiet().then(
    () => {
      if (timer.signal.aborted || controller.signal.aborted) return;
      expired = true;
      controller.abort(reason());
      resolve('timed-out');
    },
    (error) => {
      // Stopping the timer rejects too. Only a failure of the clock itself matters.
      if (!timer.signal.aborted) controller.abort(error);
    },
  );
  return {
    signal: controller.signal,
    reached,
    expired: () => expired,
    renew() {
      renewed = true;
    },
    [Symbol.dispose]() {
      timer.abort(done);
      for (const undo of detach) undo();
    },
  };
}

/**
 * Settles like `promise`, or rejects with the signal's reason if it aborts first. The work behind the promise
 * continues.
 */
export async function abortable<Value>(
  promise: Promise<Value>,
  signal: AbortSignal | undefined,
): Promise<Value> {
  if (signal === undefined) return await promise;
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  if (signal.aborted) abort();
  try {
    return await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/**
 * Remembers what a function gives for each key. What failed is done again when it is asked for again. Several
 * callers may wait for one work, so it must not end with the signal of one of them.
 */
export function remembered<Value>(): (key: string, make: () => Promise<Value>) => Promise<Value> {
  const known = new Map<string, Promise<Value>>();
  return (key, make) => {
    const before = known.get(key);
    if (before) return before;
    const value = make();
    known.set(key, value);
    value.catch(() => known.delete(key));
    return value;
  };
}

/** Resolves after the given milliseconds, or as soon as the signal aborts. */
export async function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  try {
    await clock.sleep(ms, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** Rejects with the signal's reason when it aborts. Never settles before. */
export function untilAborted(signal: AbortSignal): Promise<never> {
  return abortable(new Promise<never>(() => undefined), signal);
}
