import { type CaseVerdicts, caseRate, mean, scoredTrials } from './cases.ts';
import { normalQuantile, studentQuantile } from './distributions.ts';

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
