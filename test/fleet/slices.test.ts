import { expect, test } from 'vitest';
import type { BatchInput } from '../../src/fleet/workflow/messages.ts';
import { partsOf } from '../../src/fleet/workflow/slices.ts';

const lane = 1_000;

function partsFor(more: Partial<BatchInput>) {
  const input: BatchInput = {
    batch: 'b',
    document: '',
    trials: 4_000,
    taskQueue: 'offsite',
    pool: 'default',
    heartbeatMs: 60_000,
    window: 100,
    slice: 1_000,
    lane,
    priority: 3,
    budget: {},
    trialBudget: {},
    ...more,
  };
  const parts = partsOf(input);
  const sizes = parts.map(({ count }) => count);
  // The parts are the list: none is missing, and none twice.
  expect(parts.map(({ first }) => first)).toEqual(
    sizes.map((_, index) => sizes.slice(0, index).reduce((sum, size) => sum + size, 0)),
  );
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(input.trials);
  expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(1);
  return { input, sizes };
}

/** The permits in use while these slices run. */
function inUse(sizes: number[], window: number): number {
  return Math.min(
    window,
    sizes.reduce((sum, size) => sum + Math.min(lane, size), 0),
  );
}

test.each([
  { trials: 1_500, window: 1_500 },
  { trials: 2_000, window: 2_000 },
  { trials: 4_000, window: 4_000 },
  { trials: 20_000, window: 20_000 },
  { trials: 2_500, window: 2_000 },
  { trials: 4_001, window: 4_000 },
  { trials: 4_000, window: 2_000, slice: 3_999 },
  { trials: 10_000, window: 3_000 },
])('a batch uses its whole window, from the first slices to the last: %o', (more) => {
  const { input, sizes } = partsFor(more);
  const together = Math.ceil(input.window / lane);
  expect(inUse(sizes.slice(0, together), input.window)).toBe(input.window);
  expect(inUse(sizes.slice(-together), input.window)).toBe(input.window);
});

test('a batch is not divided into more slices than it needs', () => {
  expect(partsFor({ trials: 4_000 }).sizes).toEqual([1_000, 1_000, 1_000, 1_000]);
  expect(partsFor({ trials: 40, slice: 1, window: 10 }).sizes).toEqual([20, 20]);
  // With a budget, one slice at a time schedules trials.
  expect(partsFor({ trials: 4_000, window: 2_000, budget: { usd: 5 } }).sizes).toEqual([2_000, 2_000]);
  // The history of the batch stays bounded.
  expect(partsFor({ trials: 1_000_000 }).sizes.length).toBe(250);
});
