import type { Clock } from '../../src/base/clock.ts';

export interface TestClock extends Clock {
  /** The short waits that were asked for, in milliseconds, in order. */
  waits: number[];
  /** Lets the deadline of exactly this length that was set last pass. */
  expire(ms: number): void;
}

/**
 * Longer sleeps are deadlines: they pass when a test says so. Shorter ones are waits between attempts: they
 * pass at once.
 */
const shortestDeadline = 100_000;

export const testDeadlines = { connect: 60_000, attempt: 100_000, call: 1_000_000 };

export function testClock(start = Date.parse('2026-01-01T00:00:00Z')): TestClock {
  let now = start;
  const waits: number[] = [];
  const deadlines: { ms: number; pass: () => void }[] = [];
  return {
    waits,
    now: () => now,
    monotonic: () => now,
    sleep(ms, signal) {
      signal?.throwIfAborted();
      if (ms < shortestDeadline) {
        waits.push(ms);
        now += ms;
        return Promise.resolve();
      }
      return new Promise<void>((pass, fail) => {
        deadlines.push({ ms, pass });
        signal?.addEventListener('abort', () => fail(signal.reason), { once: true });
      });
    },
    expire(ms) {
      const deadline = deadlines.findLast((one) => one.ms === ms);
      if (!deadline) throw new Error(`no deadline of ${ms} ms was set`);
      now += ms;
      deadline.pass();
    },
  };
}
