export interface PassRate {
  /**
   * The mean of the cases' pass rates, from 0 to 1: each case counts the same, however many trials it has.
   */
  rate: number;
  interval: Interval;
  /** Cases with a scored trial. */
  cases: number;
  passed: number;
  failed: number;
  void: number;
  /** The number of independent trials with the same information; at most the number of scored trials. */
  effectiveTrials: number;
}

/**
 * The pass rate of a suite, with an interval for other cases of the same kind. Trials of one case are alike,
 * so that ten trials of one case say less than one trial of ten cases: the interval is Wilson's with the
 * effective number of trials, as Korn and Graubard propose ("Confidence intervals for proportions with small
 * expected number of positive counts estimated from survey data", Survey Methodology 24(2), 1998). With one
 * trial per case it is Wilson's interval itself.
 *
 * Undefined if no trial was scored.
 */
export function passRate(
  cases: readonly CaseVerdicts[],
  confidence: number = usualConfidence,
): PassRate | undefined {
  const scored = cases.filter((one) => scoredTrials(one) > 0);
  if (scored.length === 0) return undefined;
  const rates = scored.map(caseRate);
  const sum = (field: 'passed' | 'failed' | 'void') => cases.reduce((total, one) => total + one[field], 0);
  const counts = { passed: sum('passed'), failed: sum('failed'), void: sum('void') };
  const rate = mean(rates);
  const effective = effectiveTrials(rates, counts.passed + counts.failed);
  const interval = wilsonInterval(rate * effective, effective, confidence);
  return { rate, interval, cases: scored.length, ...counts, effectiveTrials: effective };
}

/**
 * The number of independent trials that would say as much about the mean of the cases' rates (Kish, "Survey
 * Sampling", 1965, section 8.2), with the correction of Korn and Graubard for few cases, where the estimate
 * of the variance is poor. The result is at least the number of cases and at most the number of trials. If
 * all trials passed, or none did, it is unknown how alike the trials of a case are, so each case counts as
 * one trial.
 */
export function effectiveTrials(rates: readonly number[], trials: number): number {
  const cases = rates.length;
  const rate = mean(rates);
  const variance = mean(rates.map((one) => (one - rate) ** 2)) / cases;
  if (rate === 0 || rate === 1 || cases === 1) return cases;
  if (variance === 0) return trials;
  const t = (freedom: number) => studentQuantile(0.975, freedom);
  const effective = ((rate * (1 - rate)) / variance) * (t(trials - 1) / t(cases - 1)) ** 2;
  // Removes rounding errors, so that ten cases with one trial each count as exactly ten trials.
  return Math.max(cases, Math.min(trials, Number(effective.toFixed(9))));
}

/**
 * Wilson's score interval for a proportion ("Probable Inference, the Law of Succession, and Statistical
 * Inference", Journal of the American Statistical Association 22, 1927). Brown, Cai and DasGupta recommend it
 * for small numbers ("Interval Estimation for a Binomial Proportion", Statistical Science 16(2), 2001).
 *
 * @param trials more than 0; need not be whole
 */
export function wilsonInterval(
  successes: number,
  trials: number,
  confidence: number = usualConfidence,
): Interval {
  const z = normalQuantile((1 + confidence) / 2);
  const rate = successes / trials;
  const weight = 1 + z ** 2 / trials;
  const center = (rate + z ** 2 / (2 * trials)) / weight;
  const half = (z / weight) * Math.sqrt((rate * (1 - rate)) / trials + z ** 2 / (4 * trials ** 2));
  return { low: Math.max(0, center - half), high: Math.min(1, center + half) };
}

/** A range that contains the true value with a stated confidence. */
export interface Interval {
  low: number;
  high: number;
}

/** The usual confidence of an interval: 95 %. */
export const usualConfidence = 0.95;

/** The verdicts of a case's trials. Void trials say nothing about the case: they are counted and left out. */
export interface CaseVerdicts {
  /** Names the case on both sides of a comparison. */
  id: string;
  passed: number;
  failed: number;
  void: number;
}

/** One measured number for each scored trial of a case. */
export interface CaseValues {
  /** Names the case on both sides of a comparison. */
  id: string;
  values: readonly number[];
}

/** The cases of two sides, by name. */
interface Paired<Case> {
  pairs: { id: string; a: Case; b: Case }[];
  /** Cases that only one side has, or that have no usable trial on the other side. */
  onlyA: string[];
  onlyB: string[];
}

export function scoredTrials({ passed, failed }: CaseVerdicts): number {
  return passed + failed;
}

/** From 0 to 1; the case needs a scored trial. */
export function caseRate({ passed, failed }: CaseVerdicts): number {
  return passed / (passed + failed);
}

/** Pairs the cases that both sides have, in the order of the first. Unusable cases count as absent. */
export function pairCases<Case extends { id: string }>(
  a: readonly Case[],
  b: readonly Case[],
  isUsable: (one: Case) => boolean,
): Paired<Case> {
  const byId = new Map(b.filter(isUsable).map((one) => [one.id, one]));
  const usable = a.filter(isUsable);
  const pairs = usable.flatMap((one) => {
    const other = byId.get(one.id);
    return other ? [{ id: one.id, a: one, b: other }] : [];
  });
  const paired = new Set(pairs.map(({ id }) => id));
  return {
    pairs,
    onlyA: usable.map(({ id }) => id).filter((id) => !paired.has(id)),
    onlyB: [...byId.keys()].filter((id) => !paired.has(id)),
  };
}

/** The mean; NaN if there are no values. */
export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** The median: of an even number of values, between the two in the middle. NaN if there are no values. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  // Halved before they are added: the sum of two doubles can overflow.
  const half = (index: number) => (sorted[index] ?? Number.NaN) / 2;
  return half(Math.ceil(values.length / 2) - 1) + half(Math.floor(values.length / 2));
}

/**
 * The probability that a standard normal variable is at most `x`. Marsaglia, "Evaluating the Normal
 * Distribution", Journal of Statistical Software 11(4), 2004: a series that is accurate to 15 digits.
 */
export function normalCdf(x: number): number {
  if (x < -8) return 0;
  if (x > 8) return 1;
  let sum = x;
  let term = x;
  for (let odd = 3, before = Number.NaN; sum !== before; odd += 2) {
    before = sum;
    term *= (x * x) / odd;
    sum += term;
  }
  return 0.5 + (sum * Math.exp((-x * x) / 2)) / Math.sqrt(2 * Math.PI);
}

/** The `x` with `normalCdf(x) = probability`. */
export function normalQuantile(probability: number): number {
  return solve(normalCdf, probability, 8);
}

/**
 * The value that a variable with Student's t distribution stays below with the given probability. Abramowitz
 * and Stegun, "Handbook of Mathematical Functions", 1964, 26.7.3 and 26.7.4: finite sums for whole degrees of
 * freedom.
 *
 * @param freedom degrees of freedom, a whole number from 1
 */
export function studentQuantile(probability: number, freedom: number): number {
  // Above this, the difference from the normal distribution is below one thousandth.
  if (freedom > 2_000) return normalQuantile(probability);
  return solve((x) => studentCdf(x, freedom), probability, 1e6);
}

function studentCdf(x: number, freedom: number): number {
  const angle = Math.atan(x / Math.sqrt(freedom));
  const cosine = Math.cos(angle);
  const isOdd = freedom % 2 === 1;
  let term = isOdd ? cosine : 1;
  let sum = freedom === 1 ? 0 : term;
  for (let n = isOdd ? 3 : 2; n <= freedom - 2; n += 2) {
    term *= ((n - 1) / n) * cosine * cosine;
    sum += term;
  }
  const within = isOdd ? (2 / Math.PI) * (angle + Math.sin(angle) * sum) : Math.sin(angle) * sum;
  return (1 + within) / 2;
}

/** The probability of each number of successes in `n` attempts, from 0 to `n`. */
export function binomial(n: number, probability: number): number[] {
  if (probability <= 0 || probability >= 1) {
    const certain = probability <= 0 ? 0 : n;
    return Array.from({ length: n + 1 }, (_, successes) => (successes === certain ? 1 : 0));
  }
  const logOdds = Math.log(probability) - Math.log1p(-probability);
  let log = n * Math.log1p(-probability);
  return Array.from({ length: n + 1 }, (_, successes) => {
    if (successes > 0) log += Math.log((n - successes + 1) / successes) + logOdds;
    return Math.exp(log);
  });
}

/** Bisects an increasing function between `-reach` and `reach`. */
function solve(grows: (x: number) => number, value: number, reach: number): number {
  let [low, high] = [-reach, reach];
  for (let n = 0; n < 100; n++) {
    const middle = (low + high) / 2;
    if (grows(middle) < value) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}
