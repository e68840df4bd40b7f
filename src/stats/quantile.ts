import { binomial, type CaseValues, effectiveTrials, mean, usualConfidence } from './pass-rate.ts';

export interface Quantile {
  /** From 0 to 1; 0.5 is the median. */
  level: number;
  value: number;
  /** Undefined if there are too few trials for a bound on this side. */
  low: number | undefined;
  high: number | undefined;
}

interface Weighted {
  value: number;
  weight: number;
}

/**
 * A quantile of the trials' values, where each case has the same weight, with an interval from order
 * statistics (Conover, "Practical Nonparametric Statistics", 1999, section 3.2): its ends are measured
 * values, and nothing is assumed about their distribution. As in {@link effectiveTrials}, trials of one case
 * count as fewer if they are alike (Woodruff, "Confidence Intervals for Medians and Other Position Measures",
 * Journal of the American Statistical Association 47, 1952).
 *
 * A bound is undefined where the trials are too few for it: an upper bound of the 95 % quantile needs 72
 * trials.
 *
 * Undefined without values.
 */
export function quantile(
  cases: readonly CaseValues[],
  level: number,
  confidence: number = usualConfidence,
): Quantile | undefined {
  const used = cases.filter(({ values }) => values.length > 0);
  if (used.length === 0) return undefined;
  const sorted = used
    .flatMap(({ values }) => values.map((value) => ({ value, weight: 1 / values.length / used.length })))
    .sort((one, other) => one.value - other.value);
  const value = weightedQuantile(sorted, level);
  const below = used.map(({ values }) => mean(values.map((one) => (one <= value ? 1 : 0))));
  const trials = Math.floor(effectiveTrials(below, sorted.length));
  const [low, high] = ranks(trials, level, confidence);
  return {
    level,
    value,
    low: low === undefined ? undefined : atShare(sorted, low / trials),
    high: high === undefined ? undefined : atShare(sorted, high / trials),
  };
}

/**
 * The ranks, from 1, of the values that enclose a quantile of `n` independent values. Undefined where no
 * value suffices.
 */
function ranks(n: number, level: number, confidence: number): [number | undefined, number | undefined] {
  const outside = (1 - confidence) / 2;
  const chances = binomial(n, level);
  // The number of values below the quantile is binomial.
  let low = 0;
  for (let sum = chances[0] ?? 0; sum <= outside; sum += chances[low] ?? 0) low++;
  let high = n + 1;
  for (let sum = chances[n] ?? 0; sum <= outside; sum += chances[high - 1] ?? 0) high--;
  return [low === 0 ? undefined : low, high > n ? undefined : high];
}

/** Rounding errors of sums of weights stay below this. */
const tiny = 1e-9;

/** The smallest value such that at least a share of the weight is at or below it. */
function atShare(sorted: readonly Weighted[], share: number): number {
  let sum = 0;
  for (const { value, weight } of sorted) {
    sum += weight;
    if (sum >= share - tiny) return value;
  }
  return sorted.at(-1)?.value ?? Number.NaN;
}

/**
 * Between two values, the middle: definition 2 of Hyndman and Fan, "Sample Quantiles in Statistical
 * Packages", The American Statistician 50(4), 1996.
 */
function weightedQuantile(sorted: readonly Weighted[], level: number): number {
  return (atShare(sorted, level) + atShare(sorted, level + 2 * tiny)) / 2;
}
