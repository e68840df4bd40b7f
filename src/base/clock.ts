import { setTimeout as delay } from 'node:timers/promises';

/** The clock that code gets from its caller, so that a test can pass another one. */
export interface Clock {
  /** Epoch milliseconds. */
  now(): number;
  /** Resolves after `ms` milliseconds. Rejects with the signal's reason if it aborts first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  async sleep(ms, signal) {
    signal?.throwIfAborted();
    try {
      await delay(ms, undefined, { signal });
    } catch (error) {
      throw signal?.aborted ? signal.reason : error;
    }
  },
};

/**
 * A clock that begins with the present time of `clock` and then only passes, so that the differences of its
 * times are durations, even if somebody sets the machine's clock meanwhile.
 *
 * @param monotonic milliseconds that nobody can set
 */
export function steadyClock(clock: Clock, monotonic = () => performance.now()): Clock {
  const begun = { at: clock.now(), monotonic: monotonic() };
  return {
    now: () => begun.at + Math.round(monotonic() - begun.monotonic),
    sleep: (ms, signal) => clock.sleep(ms, signal),
  };
}
