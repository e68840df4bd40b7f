import { type BootstrapOptions, bootstrapInterval } from './bootstrap.ts';
import { type CaseValues, type CaseVerdicts, caseRate, mean, pairCases, scoredTrials } from './cases.ts';
import type { Interval } from './interval.ts';
import { type McNemar, mcnemar } from './mcnemar.ts';

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
  /** Undefined without pairs. */
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
    interval: any ? bootstrapInterval([...differences, oneTrial, -oneTrial], options) : undefined,
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

function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const at = (index: number) => sorted[index] ?? Number.NaN;
  return (at(Math.ceil(values.length / 2) - 1) + at(Math.floor(values.length / 2))) / 2;
}

/** What an interval of a difference says: `none` if it contains zero. */
export function directionOf(interval: Interval | undefined): 'up' | 'down' | 'none' {
  if (interval && interval.low > 0) return 'up';
  return interval && interval.high < 0 ? 'down' : 'none';
}
