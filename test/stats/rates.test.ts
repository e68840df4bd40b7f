import { expect, test } from 'vitest';
import { mcnemar } from '../../src/stats/compare.ts';
import {
  binomial,
  type CaseVerdicts,
  effectiveTrials,
  normalCdf,
  normalQuantile,
  passRate,
  studentQuantile,
  wilsonInterval,
} from '../../src/stats/pass-rate.ts';
import { noiseOf, passAtEachK, passAtK, passHatK, randomIndex } from '../../src/stats/repeats.ts';

const verdicts = (passed: number, failed: number, id = 'a'): CaseVerdicts => ({
  id,
  passed,
  failed,
  void: 0,
});

test('distributions agree with scipy 1.17.1', () => {
  for (const [x, probability] of [
    [-3, 0.0013498980316300933],
    [-1.5, 0.06680720126885807],
    [0.3, 0.6179114221889526],
    [2.2, 0.9860965524865014],
  ] as const)
    expect(normalCdf(x)).toBeCloseTo(probability, 14);
  for (const [probability, x] of [
    [0.5, 0],
    [0.9, 1.2815515655446004],
    [0.975, 1.959963984540054],
    [0.0001, -3.7190164854556804],
  ] as const)
    expect(normalQuantile(probability)).toBeCloseTo(x, 10);
  for (const [probability, freedom, x] of [
    [0.975, 1, 12.706204736174694],
    [0.975, 2, 4.302652729749462],
    [0.975, 3, 3.1824463052837078],
    [0.975, 30, 2.0422724563012378],
    [0.995, 4, 4.604094871349992],
    [0.9, 7, 1.4149239276505086],
    [0.975, 101, 1.983731002955606],
  ] as const)
    expect(studentQuantile(probability, freedom)).toBeCloseTo(x, 9);
  const ten = binomial(10, 0.3);
  expect(ten[0]).toBeCloseTo(0.0282475249, 12);
  expect(ten[3]).toBeCloseTo(0.2668279319999998, 12);
  expect(binomial(200, 0.95)[190]).toBeCloseTo(0.12835737340035247, 12);
  expect(binomial(3, 1)).toEqual([0, 0, 0, 1]);
});

test("Wilson's interval agrees with statsmodels 0.15.0", () => {
  for (const [passed, trials, confidence, low, high] of [
    [0, 10, 0.95, 0, 0.27753279986288926],
    [1, 10, 0.95, 0.017876213095072924, 0.40415002679523854],
    [8, 10, 0.95, 0.49016247153664183, 0.9433178485456247],
    [10, 10, 0.95, 0.7224672001371106, 1],
    [81, 263, 0.95, 0.2552885198782742, 0.36620957698280004],
    [15, 148, 0.9, 0.06744326224687144, 0.14957293174640032],
    [45, 50, 0.99, 0.7402692104043159, 0.9660091162215817],
  ] as const) {
    const interval = wilsonInterval(passed, trials, confidence);
    expect(interval.low).toBeCloseTo(low, 10);
    expect(interval.high).toBeCloseTo(high, 10);
  }
});

test("Wilson's interval agrees with Newcombe's table I (Statistics in Medicine 17, 1998)", () => {
  for (const [passed, trials, low, high] of [
    [81, 263, 0.2553, 0.3662],
    [15, 148, 0.0624, 0.1605],
    [0, 20, 0, 0.1611],
    [1, 29, 0.0061, 0.1718],
  ] as const) {
    const interval = wilsonInterval(passed, trials);
    expect(interval.low).toBeCloseTo(low, 4);
    expect(interval.high).toBeCloseTo(high, 4);
  }
});

test('with one trial per case, the interval of a pass rate is that of the trials', () => {
  const cases = Array.from({ length: 10 }, (_, n) => verdicts(n < 8 ? 1 : 0, n < 8 ? 0 : 1, String(n)));
  expect(passRate(cases)).toMatchObject({ rate: 0.8, cases: 10, passed: 8, failed: 2, effectiveTrials: 10 });
  const { low = 0, high = 0 } = passRate(cases)?.interval ?? {};
  expect(low).toBeCloseTo(0.49016247153664183, 10);
  expect(high).toBeCloseTo(0.9433178485456247, 10);
});

test('repeats that always agree say no more than one trial per case', () => {
  const once = Array.from({ length: 10 }, (_, n) => verdicts(n < 8 ? 1 : 0, n < 8 ? 0 : 1, String(n)));
  const often = once.map(({ passed, failed }, n) => verdicts(passed * 7, failed * 7, String(n)));
  expect(passRate(often)?.effectiveTrials).toBeCloseTo(10, 10);
  expect(passRate(often)?.interval.low).toBeCloseTo(passRate(once)?.interval.low ?? 0, 10);
});

test('the effective number of trials is between the number of cases and the number of trials', () => {
  expect(effectiveTrials([1, 1, 1], 30)).toBe(3);
  expect(effectiveTrials([0, 0], 8)).toBe(2);
  expect(effectiveTrials([0.5, 0.5], 20)).toBe(20);
  expect(effectiveTrials([0.4, 0.6, 0.5, 0.5], 40)).toBe(40);
  // The mean is 0.55 and its variance 0.0525 / 8; Student's quantiles are scipy 1.17.1's.
  const byHand = (0.2475 / (0.0525 / 8)) * (1.9904502102301282 / 2.3646242510102993) ** 2;
  expect(effectiveTrials([0.2, 0.9, 0.4, 0.7, 0.5, 0.6, 0.3, 0.8], 80)).toBeCloseTo(byHand, 7);
});

test('each case counts the same in a pass rate; void trials are counted and left out', () => {
  const cases = [verdicts(1, 0, 'a'), verdicts(0, 9, 'b'), { id: 'c', passed: 0, failed: 0, void: 4 }];
  expect(passRate(cases)).toMatchObject({ rate: 0.5, cases: 2, passed: 1, failed: 9, void: 4 });
  expect(passRate([])).toBeUndefined();
  expect(passRate([{ id: 'c', passed: 0, failed: 0, void: 4 }])).toBeUndefined();
});

test("McNemar's p-values agree with statsmodels 0.15.0 (exact) and scipy 1.17.1 (mid-p)", () => {
  for (const [better, worse, exactP, midP] of [
    [5, 0, 0.0625, 0.03125],
    [4, 0, 0.125, 0.0625],
    [6, 0, 0.03125, 0.015625],
    [1, 9, 0.021484375, 0.011718749999999998],
    [3, 12, 0.03515625, 0.02127075195312501],
    [7, 7, 1, 0.8952636718750001],
    [40, 60, 0.05688793364098089, 0.04604406692934291],
  ] as const) {
    const found = mcnemar(better, worse);
    expect(found.exactP).toBeCloseTo(exactP, 12);
    expect(found.midP).toBeCloseTo(midP, 12);
  }
  // The first example of Fagerland et al. 2013: airway hyper-responsiveness, 1 against 7.
  expect(mcnemar(1, 7).exactP).toBeCloseTo(0.0703, 4);
  expect(mcnemar(1, 7).midP).toBeCloseTo(0.0391, 4);
  expect(mcnemar(121, 59).exactP).toBeCloseTo(4.4344492637551645e-6, 12);
});

test('without a case that changed, no test says that the sides differ', () => {
  expect(mcnemar(0, 0)).toMatchObject({ exactP: 1, midP: 1 });
});

test("pass@k agrees with the code of Chen et al. 2021 (figure 3), and pass^k with τ-bench's formula", () => {
  // 1 - numpy.prod(1 - k / numpy.arange(n - c + 1, n + 1)), numpy 2.4.6; math.comb(c, k) / math.comb(n, k)
  expect(passAtK(10, 3, 1)).toBeCloseTo(0.3, 12);
  expect(passAtK(10, 3, 5)).toBeCloseTo(0.9166666666666666, 12);
  expect(passAtK(200, 7, 100)).toBeCloseTo(0.9929911172418123, 12);
  expect(passAtK(5, 4, 2)).toBe(1);
  expect(passHatK(8, 6, 3)).toBeCloseTo(20 / 56, 12);
  expect(passHatK(8, 6, 7)).toBe(0);
  expect(passHatK(4, 4, 4)).toBe(1);
});

test('both are unbiased: over all outcomes their mean is the truth', () => {
  const [n, k, p] = [6, 3, 0.7];
  const meanOf = (estimate: typeof passAtK) =>
    binomial(n, p).reduce((sum, chance, c) => sum + chance * estimate(n, c, k), 0);
  expect(meanOf(passAtK)).toBeCloseTo(1 - (1 - p) ** k, 12);
  expect(meanOf(passHatK)).toBeCloseTo(p ** k, 12);
});

test('pass@k is given for each k that every case allows', () => {
  const cases = [verdicts(2, 1, 'a'), verdicts(2, 0, 'b'), { id: 'c', passed: 0, failed: 0, void: 3 }];
  const [one, two, ...rest] = passAtEachK(cases);
  expect(rest).toEqual([]);
  expect(one?.any).toBeCloseTo(5 / 6, 12);
  expect(one?.all).toBeCloseTo(5 / 6, 12);
  expect(two?.any).toBe(1);
  expect(two?.all).toBeCloseTo(2 / 3, 12);
  expect(passAtEachK([])).toEqual([]);
});

test('a case that both passes and fails flips by itself; single trials say nothing about that', () => {
  const cases = [verdicts(2, 1, 'mixed'), verdicts(3, 0, 'b'), verdicts(1, 0, 'c'), verdicts(0, 2, 'd')];
  expect(noiseOf(cases)).toMatchObject({ repeated: 3, flipping: ['mixed'] });
  expect(noiseOf([verdicts(1, 0), verdicts(0, 1)])).toEqual({ repeated: 0, flipping: [], luck: undefined });
  expect(noiseOf([])).toEqual({ repeated: 0, flipping: [], luck: undefined });
});

test('the 95 % interval of a pass rate holds it, for other cases of the same kind', () => {
  const random = randomIndex(4);
  const uniform = () => random(2 ** 31) / 2 ** 31;
  for (const [cases, trials] of [
    [10, 1],
    [10, 8],
    [40, 3],
  ] as const) {
    let held = 0;
    for (let n = 0; n < 1_000; n++) {
      const found = Array.from({ length: cases }, (_, id) => {
        const rate = uniform();
        const passed = Array.from({ length: trials }, () => uniform() < rate).filter(Boolean).length;
        return verdicts(passed, trials - passed, String(id));
      });
      const { low = 1, high = 0 } = passRate(found)?.interval ?? {};
      if (low <= 0.5 && high >= 0.5) held++;
    }
    // 95 % less three standard errors. An interval of ten trials cannot have just 95 %.
    expect(held).toBeGreaterThanOrEqual(930);
    expect(held).toBeLessThanOrEqual(990);
  }
});

test('what the repeats of one batch say about luck holds for the next batch', () => {
  const random = randomIndex(8);
  const uniform = () => random(2 ** 31) / 2 ** 31;
  for (const trials of [2, 5]) {
    let held = 0;
    for (let n = 0; n < 1_000; n++) {
      const rates = Array.from({ length: 30 }, () => (uniform() < 0.5 ? 1 : uniform()));
      const batch = () =>
        rates.map((rate, id) => {
          const passed = Array.from({ length: trials }, () => uniform() < rate).filter(Boolean).length;
          return verdicts(passed, trials - passed, String(id));
        });
      const [one, other] = [batch(), batch()];
      const moved = Math.abs((passRate(one)?.rate ?? 0) - (passRate(other)?.rate ?? 0));
      if (moved <= (noiseOf(one).luck ?? 0)) held++;
    }
    expect(held).toBeGreaterThanOrEqual(930);
    expect(held).toBeLessThanOrEqual(985);
  }
});
