import type { Clock } from '../../src/base/clock.ts';

export interface HandClock extends Clock {
  /** Waits that are on, in milliseconds, in the order in which they were begun. */
  readonly waits: number[];
  /** Lets time pass; waits that are over by then end. */
  pass(ms: number): Promise<void>;
  /** Sets the wall clock, as a person or NTP does: waits are not touched. */
  set(epochMs: number): void;
}

/** Stands still until time is passed by hand. */
export function handClock(): HandClock {
  let now = 1_000_000;
  let elapsed = 0;
  const waiting = new Map<object, { until: number; end: () => void }>();
  return {
    now: () => now,
    monotonic: () => elapsed,
    get waits() {
      return [...waiting.values()].map(({ until }) => until - elapsed);
    },
    sleep(ms, signal) {
      return new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason);
        const wait = {};
        const abort = () => {
          waiting.delete(wait);
          reject(signal?.reason);
        };
        signal?.addEventListener('abort', abort, { once: true });
        const end = () => {
          waiting.delete(wait);
          signal?.removeEventListener('abort', abort);
          resolve();
        };
        waiting.set(wait, { until: elapsed + ms, end });
      });
    },
    async pass(ms) {
      now += ms;
      elapsed += ms;
      for (const { until, end } of [...waiting.values()]) if (until <= elapsed) end();
      await settled();
    },
    set(epochMs) {
      now = epochMs;
    },
  };
}

/** Lets everything that can go on without time passing go on. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
}
