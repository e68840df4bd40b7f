import {
  binomial,
  type CaseValues,
  type CaseVerdicts,
  caseRate,
  type Interval,
  mean,
  median,
  normalCdf,
  pairCases,
  scoredTrials,
  studentQuantile,
  usualConfidence,
} from './pass-rate.ts';
import { randomIndex } from './repeats.ts';

/** A case on both sides, with its pass rates from 0 to 1. */
export interface ComparedCase {
  id: string;
  a: number;
  b: number;
}

export interface RateComparison {
  /** The mean of the paired cases' pass rates on each side; undefined without pairs. */
  a: number | undefined;
  b: number | undefined;
  /** `b - a`; undefined without pairs. */
  difference: number | undefined;
  /** Undefined for fewer than two pairs: a single case does not show how much cases differ. */
  interval: Interval | undefined;
  cases: ComparedCase[];
  /** Cases with a scored trial on one side only. */
  onlyA: string[];
  onlyB: string[];
  /** On the cases' majority verdicts. */
  mcnemar: McNemar;
  /** Cases that the test leaves out, because on a side half of their trials passed. */
  tied: string[];
}

/**
 * Compares the pass rates of two sides, paired by case: a case that is hard for both says nothing about their
 * difference. The interval is {@link bootstrapInterval}'s, drawn by case.
 *
 * Without a correction, few flips or none would look like certainty: drawing from cases that did not change
 * gives only zeros. Bonett and Price add one imaginary case that got better and one that got worse ("Adjusted
 * Wald Confidence Interval for a Difference of Binomial Proportions Based on Paired Data", Journal of
 * Educational and Behavioral Statistics 37(4), 2012). Here the draws include two such cases. If cases have
 * several trials, only one trial of each imaginary case flips.
 */
export function compareRates(
  a: readonly CaseVerdicts[],
  b: readonly CaseVerdicts[],
  options: Omit<BootstrapOptions, 'of'> = {},
): RateComparison {
  const { pairs, onlyA, onlyB } = pairCases(a, b, (one) => scoredTrials(one) > 0);
  const cases = pairs.map(({ id, a, b }) => ({ id, a: caseRate(a), b: caseRate(b) }));
  const differences = cases.map(({ a, b }) => b - a);
  const oneTrial = mean(pairs.map(({ a, b }) => 1 / Math.min(scoredTrials(a), scoredTrials(b))));
  const isTied = ({ a, b }: ComparedCase) => a === 0.5 || b === 0.5;
  const decided = cases.filter((one) => !isTied(one));
  const better = decided.filter(({ a, b }) => a < 0.5 && b > 0.5).length;
  const worse = decided.filter(({ a, b }) => a > 0.5 && b < 0.5).length;
  const any = pairs.length > 0;
  return {
    a: any ? mean(cases.map(({ a }) => a)) : undefined,
    b: any ? mean(cases.map(({ b }) => b)) : undefined,
    difference: any ? mean(differences) : undefined,
    interval:
      pairs.length > 1 ? bootstrapInterval([...differences, oneTrial, -oneTrial], options) : undefined,
    cases,
    onlyA,
    onlyB,
    mcnemar: mcnemar(better, worse),
    tied: cases.filter(isTied).map(({ id }) => id),
  };
}

export interface MeasureComparison {
  /** Cases that have values on both sides. */
  cases: number;
  /**
   * The mean over cases of each side, and the mean and median over cases of `b - a`. Undefined without pairs.
   */
  a: number | undefined;
  b: number | undefined;
  meanDifference: number | undefined;
  medianDifference: number | undefined;
  /** Undefined for fewer than two pairs. */
  meanInterval: Interval | undefined;
  medianInterval: Interval | undefined;
}

/**
 * Compares a measured number (cost, tokens, time) of two sides, paired by case. A case's number is the mean
 * of its trials; {@link bootstrapInterval} draws cases.
 */
export function compareMeasures(
  a: readonly CaseValues[],
  b: readonly CaseValues[],
  options: Omit<BootstrapOptions, 'of'> = {},
): MeasureComparison {
  const { pairs } = pairCases(a, b, ({ values }) => values.length > 0);
  const differences = pairs.map(({ a, b }) => mean(b.values) - mean(a.values));
  const any = pairs.length > 0;
  return {
    cases: pairs.length,
    a: any ? mean(pairs.map(({ a }) => mean(a.values))) : undefined,
    b: any ? mean(pairs.map(({ b }) => mean(b.values))) : undefined,
    meanDifference: any ? mean(differences) : undefined,
    medianDifference: any ? median(differences) : undefined,
    meanInterval: bootstrapInterval(differences, { ...options, of: 'mean' }),
    medianInterval: bootstrapInterval(differences, { ...options, of: 'median' }),
  };
}

/**
 * Whether McNemar's test finds a difference where the interval does not. That happens with few cases, since
 * the interval counts a further case each way.
 */
export function isOnlyByMcnemar({
  interval,
  mcnemar,
}: Pick<RateComparison, 'interval' | 'mcnemar'>): boolean {
  return directionOf(interval) === 'none' && mcnemar.midP < 1 - usualConfidence;
}

/** What an interval of a difference says: `none` if it contains zero. */
export function directionOf(interval: Interval | undefined): 'up' | 'down' | 'none' {
  if (interval && interval.low > 0) return 'up';
  return interval && interval.high < 0 ? 'down' : 'none';
}

interface BootstrapOptions {
  /** From 0 to 1; the default is 0.95. */
  confidence?: number | undefined;
  /** The default is 10,000. */
  resamples?: number | undefined;
  /** The same seed gives the same interval. */
  seed?: number | undefined;
  /** What is computed from each resample; the default is `mean`. */
  of?: 'mean' | 'median' | undefined;
}

/**
 * An interval for the mean or median of cases, by the bootstrap: cases are drawn with replacement, as many as
 * there are, and the interval holds the middle of the results of the draws (Efron and Tibshirani, "An
 * Introduction to the Bootstrap", 1993, chapter 13). Give one number for each case, made from all of its
 * trials: then the trials of a case are always drawn together (Miller, "Adding Error Bars to Evals",
 * arXiv:2411.00640, 2024).
 *
 * The plain percentile interval is too narrow for few cases. The levels are therefore those of Hesterberg's
 * expanded percentile interval ("What Teachers Should Know About the Bootstrap", The American Statistician
 * 69(4), 2015, section 4.2), which has the width of a t interval.
 *
 * Undefined for fewer than two values.
 */
export function bootstrapInterval(
  values: readonly number[],
  { confidence = usualConfidence, resamples = 10_000, seed = 1, of = 'mean' }: BootstrapOptions = {},
): Interval | undefined {
  if (values.length < 2) return undefined;
  const sorted = Float64Array.from(values).sort();
  const drawn = of === 'mean' ? drawnMeans(sorted, resamples, seed) : drawnMedians(sorted, resamples, seed);
  drawn.sort();
  const level = expandedLevel(confidence, values.length);
  return { low: cleared(quantileOf(drawn, level)), high: cleared(quantileOf(drawn, 1 - level)) };
}

/** Rounding errors of sums must not decide whether an interval contains zero. */
function cleared(bound: number): number {
  return Math.abs(bound) < 1e-12 ? 0 : bound;
}

/** The level of the interval's lower end, below `(1 - confidence) / 2`. */
export function expandedLevel(confidence: number, cases: number): number {
  const t = studentQuantile((1 + confidence) / 2, cases - 1);
  return normalCdf(-Math.sqrt(cases / (cases - 1)) * t);
}

function drawnMeans(values: Float64Array, resamples: number, seed: number): Float64Array {
  const random = randomIndex(seed);
  const count = values.length;
  return new Float64Array(resamples).map(() => {
    let sum = 0;
    for (let n = 0; n < count; n++) sum += values[random(count)] ?? 0;
    return sum / count;
  });
}

/** Counts how often each value is drawn, and so needs no sorting. */
function drawnMedians(sorted: Float64Array, resamples: number, seed: number): Float64Array {
  const random = randomIndex(seed);
  const count = sorted.length;
  const times = new Uint32Array(count);
  return new Float64Array(resamples).map(() => {
    times.fill(0);
    for (let n = 0; n < count; n++) {
      const drawn = random(count);
      times[drawn] = (times[drawn] ?? 0) + 1;
    }
    const nth = (rank: number) => {
      let index = 0;
      for (let seen = times[0] ?? 0; seen < rank; seen += times[index] ?? 0) index++;
      return sorted[index] ?? 0;
    };
    const middle = Math.ceil(count / 2);
    return count % 2 === 1 ? nth(middle) : (nth(middle) + nth(middle + 1)) / 2;
  });
}

/** Interpolates between the two nearest values. */
function quantileOf(sorted: Float64Array, level: number): number {
  const position = level * (sorted.length - 1);
  const below = sorted[Math.floor(position)] ?? 0;
  const above = sorted[Math.ceil(position)] ?? 0;
  return below + (above - below) * (position - Math.floor(position));
}

export interface McNemar {
  /** How many cases changed from failed to passed, and from passed to failed. */
  better: number;
  worse: number;
  /** The two-sided exact p-value. It never overstates the evidence, and mostly understates it. */
  exactP: number;
  /** The two-sided mid-p value. This one is shown. */
  midP: number;
}

/**
 * McNemar's test: if both sides were equally good, how often would the cases that changed be split as
 * unevenly as they are, or more? The exact p-value is that of a fair coin (McNemar, "Note on the sampling
 * error of the difference between correlated proportions", Psychometrika 12(2), 1947). The mid-p value counts
 * the observed split half: in practice, its error rate is close to the stated level, while that of the exact
 * test is far below it (Fagerland, Lydersen and Laake, "The McNemar test for binary matched-pairs data: mid-p
 * and asymptotic are better than exact conditional", BMC Medical Research Methodology 13:91, 2013).
 */
export function mcnemar(better: number, worse: number): McNemar {
  if (better + worse === 0) return { better, worse, exactP: 1, midP: 1 };
  const chances = binomial(better + worse, 0.5);
  const fewer = Math.min(better, worse);
  const tail = chances.slice(0, fewer + 1).reduce((sum, chance) => sum + chance, 0);
  const observed = chances[fewer] ?? 0;
  const exactP = Math.min(1, 2 * tail);
  return { better, worse, exactP, midP: better === worse ? 1 - observed / 2 : exactP - observed };
}
