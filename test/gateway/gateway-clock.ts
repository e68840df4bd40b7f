import type { Clock } from '../../src/base/clock.ts';
import { chatAnswers } from '../../src/bounds/model.ts';
import { modelRequests } from '../../src/bounds/sandbox.ts';

export interface GatewayClock extends Clock {
  /** The waits that were asked for, in milliseconds, in order. */
  waits: number[];
  /** Lets this much time go by: deadlines that fall into it pass. */
  advance(ms: number): void;
}

/**
 * The lengths of the gateway's own deadlines; budgets of tests are hours. All other waits are between
 * attempts and pass at once.
 */
const deadlines: ReadonlySet<number> = new Set([
  30_000,
  modelRequests.time.unreadAnswer,
  chatAnswers.time.answer,
]);
const hour = 3_600_000;

export function gatewayClock(start = Date.parse('2026-01-01T00:00:00Z')): GatewayClock {
  let now = start;
  const waits: number[] = [];
  const pending = new Set<{ at: number; pass: () => void }>();
  return {
    waits,
    now: () => now,
    monotonic: () => now,
    async sleep(ms, signal) {
      signal?.throwIfAborted();
      if (!deadlines.has(ms) && ms < hour) {
        waits.push(ms);
        now += ms;
        return;
      }
      await new Promise<void>((pass, fail) => {
        const entry = { at: now + ms, pass };
        pending.add(entry);
        signal?.addEventListener(
          'abort',
          () => {
            pending.delete(entry);
            fail(signal.reason);
          },
          { once: true },
        );
      });
    },
    advance(ms) {
      now += ms;
      for (const entry of pending) {
        if (entry.at > now) continue;
        pending.delete(entry);
        entry.pass();
      }
    },
  };
}
