import { expect, test } from 'vitest';
import type { Clock } from '../src/base/clock.ts';
import { progressLines } from '../src/base/progress.ts';

/** Time goes on only when a test lets a sleep end. */
function manualClock() {
  let now = 0;
  let wake: (() => void) | undefined;
  const clock: Clock = {
    now: () => now,
    monotonic: () => now,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
        wake = () => {
          now += ms;
          resolve();
        };
      }),
  };
  return { clock, pass: () => wake?.() };
}

test('a long step says that it began, that it goes on, and how long it took', async () => {
  const lines: string[] = [];
  const { clock, pass } = manualClock();
  const during = progressLines((line) => lines.push(line), clock);
  const result = await during('Unpacking', async () => {
    for (let beat = 0; beat < 2; beat++) {
      pass();
      await new Promise((resolve) => setImmediate(resolve));
    }
    return 'unpacked';
  });
  expect(result).toBe('unpacked');
  expect(lines).toEqual([
    'Unpacking ...',
    'Unpacking: 10 s so far',
    'Unpacking: 20 s so far',
    'Unpacking: done in 20 s',
  ]);
});

test('a step that fails says so and passes its error on', async () => {
  const lines: string[] = [];
  const during = progressLines((line) => lines.push(line), manualClock().clock);
  await expect(during('Pulling', () => Promise.reject(new Error('no registry')))).rejects.toThrow(
    'no registry',
  );
  expect(lines).toEqual(['Pulling ...', 'Pulling: failed after 0 s']);
});
