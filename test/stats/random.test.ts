import { expect, test } from 'vitest';
import { randomIndex } from '../../src/stats/repeats.ts';

test('the same seed gives the same numbers, and another seed others', () => {
  const drawn = (seed: number) => {
    const random = randomIndex(seed);
    return Array.from({ length: 20 }, () => random(1_000));
  };
  expect(drawn(7)).toEqual(drawn(7));
  expect(drawn(7)).not.toEqual(drawn(8));
  expect(drawn(0)).not.toEqual(drawn(1));
});

test('sfc32 gives the numbers of the formula of PractRand in Python 3.11, with 32-bit masks', () => {
  const random = randomIndex(42);
  expect(Array.from({ length: 5 }, () => random(2 ** 32))).toEqual([
    1424808046, 3778525926, 3676079305, 1474846851, 2506647573,
  ]);
});

test('each index comes equally often, and next to each other index', () => {
  const random = randomIndex(1);
  const draws = 160_000;
  const pairs = new Array<number>(256).fill(0);
  for (let n = 0; n < draws; n++) {
    const pair = random(16) * 16 + random(16);
    pairs[pair] = (pairs[pair] ?? 0) + 1;
  }
  const expected = draws / pairs.length;
  const chiSquare = pairs.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
  // 255 degrees of freedom: 99.9 % of samples are below 330.5 (scipy 1.17.1).
  expect(chiSquare).toBeLessThan(330.5);
  expect(chiSquare).toBeGreaterThan(180);
});
