import { describe, expect, test } from 'vitest';
import {
  bootstrapInterval,
  compareMeasures,
  compareRates,
  directionOf,
  expandedLevel,
  isOnlyByMcnemar,
} from '../../src/stats/compare.ts';
import type { CaseVerdicts } from '../../src/stats/pass-rate.ts';
import { randomIndex } from '../../src/stats/repeats.ts';

const verdicts = (id: string, passed: number, failed: number): CaseVerdicts => ({
  id,
  passed,
  failed,
  void: 0,
});

/** How often something happens in `n` attempts. */
const count = (n: number, happens: () => boolean) =>
  Array.from({ length: n }, happens).filter(Boolean).length;

/** One trial per case: a string of `+` and `-`. */
const single = (marks: string) =>
  [...marks].map((mark, n) => verdicts(String(n), mark === '+' ? 1 : 0, mark === '+' ? 0 : 1));

test('a single case has a difference and no interval', () => {
  const found = compareRates([verdicts('one', 5, 0)], [verdicts('one', 2, 3)]);
  expect(found.difference).toBeCloseTo(-0.6);
  expect(found.interval).toBeUndefined();
});

describe('the bootstrap', () => {
  const values = [-0.4, -0.2, -0.2, 0, 0, 0, 0.1, 0.2, 0.5, 1, -0.6, 0.3];

  test('agrees with scipy 1.17.1 at the expanded levels, for mean and median', () => {
    expect(expandedLevel(0.95, values.length)).toBeCloseTo(0.010756614916552488, 9);
    // scipy.stats.bootstrap, percentile, 200,000 resamples, confidence 1 - 2 * 0.010756614916552488.
    const mean = bootstrapInterval(values, { resamples: 200_000 });
    expect(mean?.low).toBeCloseTo(-0.19166666666666668, 2);
    expect(mean?.high).toBeCloseTo(0.3416666666666666, 2);
    const median = bootstrapInterval(values, { resamples: 200_000, of: 'median' });
    expect(median?.low).toBeCloseTo(-0.2, 2);
    expect(median?.high).toBeCloseTo(0.3, 2);
  });

  test('gives the same interval for the same seed and cases, in whatever order they come', () => {
    const once = bootstrapInterval(values);
    expect(bootstrapInterval(values.toReversed())).toEqual(once);
    expect(bootstrapInterval(values, { seed: 2 })).not.toEqual(once);
  });

  test('gives no interval for fewer than two cases', () => {
    expect(bootstrapInterval([])).toBeUndefined();
    expect(bootstrapInterval([1])).toBeUndefined();
  });
});

describe('a comparison of pass rates', () => {
  test('says which cases it leaves out: on one side only, or without a scored trial on the other', () => {
    const a = [verdicts('both', 1, 0), verdicts('gone', 1, 0), verdicts('void', 1, 0)];
    const b = [verdicts('both', 0, 1), verdicts('new', 1, 0), { id: 'void', passed: 0, failed: 0, void: 2 }];
    const found = compareRates(a, b);
    expect(found).toMatchObject({ difference: -1, onlyA: ['gone', 'void'], onlyB: ['new'] });
    expect(found.cases).toEqual([{ id: 'both', a: 1, b: 0 }]);
  });

  test('does not depend on which side is the first', () => {
    const all = ['a', 'b', 'c', 'd'].map((id) => verdicts(id, 3, 0));
    const few = ['a', 'b', 'c', 'd'].map((id) => (id === 'a' ? verdicts(id, 1, 2) : verdicts(id, 0, 3)));
    expect(directionOf(compareRates(all, few).interval)).toBe('none');
    expect(directionOf(compareRates(few, all).interval)).toBe('none');
  });

  test('says when only the test of changed cases finds a difference, as with few cases', () => {
    const found = compareRates(single('++++++++'), single('------++'));
    expect([directionOf(found.interval), found.mcnemar.midP < 0.05]).toEqual(['none', true]);
    expect(isOnlyByMcnemar(found)).toBe(true);
    expect(isOnlyByMcnemar(compareRates(single('++++'), single('+++-')))).toBe(false);
    expect(isOnlyByMcnemar(compareRates(single('+'.repeat(40)), single('-'.repeat(40))))).toBe(false);
  });

  test('nothing in common gives no difference', () => {
    const found = compareRates(single('++'), []);
    expect(found.difference).toBeUndefined();
    expect(found.interval).toBeUndefined();
    expect(directionOf(found.interval)).toBe('none');
  });

  test('each case counts the same, with another number of repeats on each side', () => {
    const found = compareRates(
      [verdicts('a', 3, 1), verdicts('b', 1, 0)],
      [verdicts('a', 1, 1), verdicts('b', 0, 10)],
    );
    expect(found.difference).toBeCloseTo((-0.25 - 1) / 2, 12);
  });

  test('one case that changed cannot say anything about the difference', () => {
    expect(directionOf(compareRates(single('+'), single('-')).interval)).toBe('none');
    expect(directionOf(compareRates([verdicts('a', 9, 0)], [verdicts('a', 0, 9)]).interval)).toBe('none');
  });

  test('cases that all agree are no certainty: the interval is wide for few of them', () => {
    const few = compareRates(single('+++++'), single('+++++')).interval;
    const many = compareRates(single('+'.repeat(200)), single('+'.repeat(200))).interval;
    expect(few?.low).toBeLessThan(-0.3);
    expect(few?.high).toBeGreaterThan(0.3);
    expect(many?.low).toBeGreaterThan(-0.03);
    expect(many?.low).toBeLessThan(-0.01);
  });

  test('four flips in one direction among 100 cases are noise, seven are not', () => {
    const a = '+'.repeat(100);
    const flipped = (flips: number) => compareRates(single(a), single('-'.repeat(flips) + a.slice(flips)));
    expect(directionOf(flipped(4).interval)).toBe('none');
    expect(flipped(4).mcnemar.midP).toBeGreaterThan(0.05);
    expect(directionOf(flipped(7).interval)).toBe('down');
    expect(flipped(7).mcnemar).toMatchObject({ better: 0, worse: 7 });
    expect(flipped(7).mcnemar.exactP).toBeLessThan(0.05);
  });

  test("McNemar's test takes majority verdicts, and names the cases that have none", () => {
    const a = [verdicts('up', 1, 2), verdicts('down', 3, 0), verdicts('tied', 1, 1), verdicts('same', 3, 0)];
    const b = [verdicts('up', 2, 1), verdicts('down', 1, 2), verdicts('tied', 2, 0), verdicts('same', 2, 1)];
    expect(compareRates(a, b)).toMatchObject({ mcnemar: { better: 1, worse: 1 }, tied: ['tied'] });
  });

  test('it takes a fraction of a second with as many cases as a batch can have', () => {
    const cases = Array.from({ length: 2_000 }, (_, n) => verdicts(String(n), n % 3, 1));
    const before = performance.now();
    compareRates(cases, cases);
    expect(performance.now() - before).toBeLessThan(5_000);
  });
});

describe('two batches of the same suite and variant', () => {
  /** The share of pairs of batches whose 95 % interval contains zero. */
  function coverage(cases: number, trials: number, rateOf: (uniform: () => number) => number): number {
    const pairs = 1_000;
    const random = randomIndex(cases * 100 + trials);
    const uniform = () => random(2 ** 31) / 2 ** 31;
    let held = 0;
    for (let n = 0; n < pairs; n++) {
      const rates = Array.from({ length: cases }, () => rateOf(uniform));
      const batch = () =>
        rates.map((rate, id) => {
          const passed = count(trials, () => uniform() < rate);
          return verdicts(String(id), passed, trials - passed);
        });
      const { interval } = compareRates(batch(), batch(), { seed: n, resamples: 1_000 });
      if (interval && interval.low <= 0 && interval.high >= 0) held++;
    }
    return held / pairs;
  }

  // Of 1,000 pairs, a true 95 % gives 93 to 97 % (three standard errors). With few cases, the interval is
  // wider than it needs to be.
  test.each([
    { cases: 40, trials: 1, high: 0.98 },
    { cases: 10, trials: 8, high: 0.99 },
  ])('the interval contains zero in 95 of 100: $cases cases, $trials trials', ({ cases, trials, high }) => {
    const share = coverage(cases, trials, (uniform) => uniform());
    expect(share).toBeGreaterThanOrEqual(0.93);
    expect(share).toBeLessThanOrEqual(high);
  });

  test('the same where nearly all cases pass always, and a few flip', () => {
    const share = coverage(40, 3, (uniform) => (uniform() < 0.6 ? 1 : 0.5 + uniform() / 2));
    expect(share).toBeGreaterThanOrEqual(0.93);
    expect(share).toBeLessThanOrEqual(0.99);
  });
});

test('a real difference is found in the direction that it has', () => {
  const random = randomIndex(3);
  const batch = (rate: number) =>
    Array.from({ length: 60 }, (_, id) => {
      const passed = count(3, () => random(100) < rate * 100);
      return verdicts(String(id), passed, 3 - passed);
    });
  const { difference = 0, interval } = compareRates(batch(0.9), batch(0.6));
  expect(directionOf(interval)).toBe('down');
  expect(interval?.low).toBeLessThan(difference);
  expect(interval?.high).toBeGreaterThan(difference);
  expect(directionOf(compareRates(batch(0.6), batch(0.9)).interval)).toBe('up');
});

describe('a comparison of measured numbers', () => {
  const values = (...all: number[][]) => all.map((values, n) => ({ id: String(n), values }));

  test('pairs cases, takes the mean of their trials, and gives mean and median of the differences', () => {
    const a = values([10, 20], [100], [5], []);
    const b = values([25], [100, 120], [], [7]);
    expect(compareMeasures(a, b)).toMatchObject({
      cases: 2,
      a: 57.5,
      b: 67.5,
      meanDifference: 10,
      medianDifference: 10,
    });
  });

  test('a case that costs far more moves the mean, and not the median', () => {
    const a = values(...Array.from({ length: 30 }, () => [10]));
    const b = values([10_000], ...Array.from({ length: 29 }, (_, n) => [10 + (n % 3) - 1]));
    const found = compareMeasures(a, b);
    expect(found.meanDifference).toBeGreaterThan(300);
    expect(found.medianDifference).toBe(0);
    expect(found.medianInterval?.high).toBeLessThanOrEqual(1);
    expect(found.meanInterval?.high).toBeGreaterThan(600);
  });

  test('without pairs there is nothing to say', () => {
    const { meanDifference, medianDifference, meanInterval } = compareMeasures(values([1]), []);
    expect([meanDifference, medianDifference, meanInterval]).toEqual([undefined, undefined, undefined]);
    expect(compareMeasures(values([1]), values([3]))).toMatchObject({
      meanDifference: 2,
      meanInterval: undefined,
    });
  });
});
