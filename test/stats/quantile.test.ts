import { expect, test } from 'vitest';
import { quantile } from '../../src/stats/quantile.ts';
import { randomIndex } from '../../src/stats/repeats.ts';

/** 1, 4, 9 … : each value in a case of its own. */
const squares = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ id: String(n), values: [(n + 1) ** 2] }));

test('quantiles and their intervals agree with scipy 1.17.1 (quantile_test) and numpy 2.4.6', () => {
  for (const [count, level, value, low, high] of [
    [20, 0.5, 110.5, 36, 225],
    [20, 0.9, 342.5, 225, undefined],
    [20, 0.95, 380.5, 289, undefined],
    [15, 0.5, 64, 16, 144],
    [15, 0.9, 196, 121, undefined],
    [15, 0.95, 225, 144, undefined],
    [100, 0.5, 2550.5, 1600, 3721],
    [100, 0.9, 8190.5, 7056, 9216],
    [100, 0.95, 9120.5, 8100, 10000],
  ] as const)
    expect(quantile(squares(count), level), `${level} of ${count}`).toEqual({ level, value, low, high });
});

test('an upper bound of the 95 % quantile needs 72 trials, and a median needs 6', () => {
  expect(quantile(squares(71), 0.95)?.high).toBeUndefined();
  expect(quantile(squares(72), 0.95)?.high).toBe(72 ** 2);
  expect(quantile(squares(5), 0.5)).toMatchObject({ value: 9, low: undefined, high: undefined });
  expect(quantile(squares(6), 0.5)).toMatchObject({ low: 1, high: 36 });
});

test('repeats that always agree make no interval narrower', () => {
  const often = squares(20).map(({ id, values: [value = 0] }) => ({ id, values: Array(9).fill(value) }));
  expect(quantile(often, 0.5)).toEqual(quantile(squares(20), 0.5));
});

test('each case has the same weight, however many trials it has', () => {
  const cases = [
    { id: 'a', values: [1] },
    { id: 'b', values: [5, 5, 5, 5, 5, 5, 5] },
    { id: 'c', values: [9] },
  ];
  expect(quantile(cases, 0.5)?.value).toBe(5);
  expect(quantile(cases, 0.3)?.value).toBe(1);
  expect(quantile(cases, 0.7)?.value).toBe(9);
});

test('one case, and no value', () => {
  expect(quantile([{ id: 'a', values: [3] }], 0.5)).toEqual({
    level: 0.5,
    value: 3,
    low: undefined,
    high: undefined,
  });
  expect(quantile([{ id: 'a', values: [] }], 0.5)).toBeUndefined();
  expect(quantile([], 0.95)).toBeUndefined();
});

test('the 95 % interval of a median holds it, with repeats too', () => {
  const random = randomIndex(5);
  const uniform = () => random(1e6) / 1e6;
  for (const repeats of [1, 4]) {
    let held = 0;
    for (let n = 0; n < 1_000; n++) {
      // A case is long or short as such, and its trials differ a little. The median of all is 1.
      const cases = Array.from({ length: 30 }, (_, id) => {
        const length = uniform() * 1.6 - 0.8;
        return {
          id: String(id),
          values: Array.from({ length: repeats }, () => 0.8 + length + uniform() * 0.4),
        };
      });
      const { low = -1, high = 9 } = quantile(cases, 0.5) ?? {};
      if (low <= 1 && high >= 1) held++;
    }
    // 95 % less three standard errors; the ends are measured values, so that more is usual.
    expect(held).toBeGreaterThanOrEqual(930);
    expect(held).toBeLessThanOrEqual(990);
  }
});
