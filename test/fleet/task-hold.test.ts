import { expect, test } from 'vitest';
import type { Clock } from '../../src/base/clock.ts';
import { TaskHold } from '../../src/fleet/worker/held-tasks.ts';

/** A clock that stands still until it is told to go on. */
class SteppedClock implements Clock {
  #now = 0;
  readonly #sleepers = new Set<{ until: number; wake: () => void }>();

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#now;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const sleeper = { until: this.#now + ms, wake: resolve };
      this.#sleepers.add(sleeper);
      const stop = () => {
        this.#sleepers.delete(sleeper);
        reject(signal?.reason);
      };
      if (signal?.aborted) stop();
      signal?.addEventListener('abort', stop);
    });
  }

  /** Goes on millisecond by millisecond, and lets everything happen that is due. */
  async go(ms: number): Promise<void> {
    for (const end = this.#now + ms; this.#now < end; ) {
      this.#now++;
      for (const sleeper of this.#sleepers) {
        if (sleeper.until > this.#now) continue;
        this.#sleepers.delete(sleeper);
        sleeper.wake();
      }
      await new Promise(setImmediate);
    }
  }
}

async function taken(heartbeatMs: number) {
  const clock = new SteppedClock();
  const beats: { at: number; phase: string }[] = [];
  const beat = async (phase: string) => {
    beats.push({ at: clock.now(), phase });
    return 'held' as const;
  };
  const hold = await TaskHold.take({ beat, heartbeatMs, clock });
  return { clock, beats, hold };
}

test('short phases share a heartbeat, and the last one is told', async () => {
  const { clock, beats, hold } = await taken(18_000);
  using _ended = hold;
  for (const phase of ['sandbox', 'harness', 'collect', 'verify']) {
    hold.phase(phase);
    await clock.go(100);
  }
  await clock.go(2_000);
  expect(beats).toEqual([
    { at: 0, phase: 'waiting' },
    { at: 1_500, phase: 'verify' },
  ]);
});

test('with a long heartbeat time, a trial of a few seconds needs only the first heartbeat', async () => {
  const { clock, beats, hold } = await taken(60_000);
  using _ended = hold;
  hold.phase('sandbox');
  await clock.go(4_900);
  expect(beats).toHaveLength(1);
  await clock.go(200);
  expect(beats).toHaveLength(2);
});

test('a phase that begins after a while is told at once, and heartbeats continue without a new phase', async () => {
  const { clock, beats, hold } = await taken(18_000);
  using _ended = hold;
  await clock.go(2_000);
  hold.phase('harness');
  await clock.go(8_000);
  expect(beats.map(({ phase }) => phase)).toEqual(['waiting', 'harness', 'harness', 'harness']);
  const [, first = 0, second = 0, third = 0] = beats.map(({ at }) => at);
  expect(first).toBeLessThan(2_010);
  expect(second - first).toBeLessThanOrEqual(3_010);
  expect(third - second).toBeLessThanOrEqual(3_010);
  expect(hold.lost.aborted).toBe(false);
});
