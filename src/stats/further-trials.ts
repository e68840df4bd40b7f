import { compareRates, directionOf } from './compare.ts';
import { type CaseVerdicts, caseRate, mean, scoredTrials, usualConfidence } from './pass-rate.ts';
import { halfWidthFor } from './repeats.ts';

export interface FurtherTrialsOptions {
  /** The wanted half width of the interval, from 0 to 1: 0.05 is ±5 points. */
  precision: number;
  /** The largest number of trials per case, void ones included. */
  maxTrials: number;
  confidence?: number | undefined;
}

export interface FurtherTrials {
  /** The mean of the cases' pass rates; undefined if no trial was scored. */
  rate: number | undefined;
  /** The half width of the interval now; undefined until two trials of a case were scored. */
  halfWidth: number | undefined;
  /** How many further trials each case needs. Empty if further trials cannot change the answer. */
  needed: Map<string, number>;
  /**
   * Why nothing is needed. `precise`: the half width is small enough. `cap`: every case that needs trials has
   * its largest number. Undefined if some are needed.
   */
  stopped: 'precise' | 'cap' | undefined;
}

/**
 * Says which cases need further trials, so that the pass rate of these cases is known to a wanted half width.
 *
 * The interval is that of {@link halfWidthFor}: it is about these cases and the luck of their trials. Further
 * trials cannot say anything about other cases.
 *
 * Checking the interval after each round, and stopping when it is narrow, is sound for two reasons:
 * - The rule stops when the interval is narrow, whatever the rate is, and never because a difference has
 *   become significant. The coverage of such a rule is right for small widths (Chow and Robbins, "On the
 *   Asymptotic Theory of Fixed-Width Sequential Confidence Intervals for the Mean", Annals of Mathematical
 *   Statistics 36(2), 1965). For ±5 points, simulations show 92 to 97 %.
 * - Every case gets the same number of scored trials. Giving more trials to the cases whose trials disagree
 *   would need fewer in total, but would never correct the cases whose first trials agree by luck: with 100
 *   cases that pass 9 times of 10, and ±3 points wanted, such a rule's 95 % interval held the truth in 64 of
 *   100 simulations.
 */
export function furtherTrials(
  cases: readonly CaseVerdicts[],
  { precision, maxTrials, confidence = usualConfidence }: FurtherTrialsOptions,
): FurtherTrials {
  const scored = cases.filter((one) => scoredTrials(one) > 0);
  const rate = scored.length === 0 ? undefined : mean(scored.map(caseRate));
  const widthFor = (trialsOf: (one: CaseVerdicts) => number) => halfWidthFor(scored, trialsOf, confidence);
  const halfWidth = widthFor(scoredTrials);
  if (halfWidth !== undefined && halfWidth <= precision) {
    return { rate, halfWidth, needed: new Map(), stopped: 'precise' };
  }
  // The variance can be estimated once cases have two trials.
  let target = halfWidth === undefined ? 2 : Math.min(...scored.map(scoredTrials)) + 1;
  const widthAt = () => widthFor((one) => Math.max(target, scoredTrials(one)));
  while (target < maxTrials && (widthAt() ?? 0) > precision) target++;
  const needed = new Map<string, number>();
  for (const one of cases) {
    const further = Math.min(target, maxTrials - one.void) - scoredTrials(one);
    // If all trials of a case were void, another would be void too.
    const isHopeless = scoredTrials(one) === 0 && one.void > 0;
    if (further > 0 && !isHopeless) needed.set(one.id, further);
  }
  return { rate, halfWidth, needed, stopped: needed.size === 0 ? 'cap' : undefined };
}

/**
 * Whether a comparison with these cases could find that the newer side is worse: whether its interval would
 * exclude zero if every newer trial had failed.
 */
export function couldBeWorse(
  a: readonly CaseVerdicts[],
  b: readonly CaseVerdicts[],
  confidence: number,
): boolean {
  const failed = b.map((one) => ({ ...one, passed: 0, failed: scoredTrials(one) }));
  return directionOf(compareRates(a, failed, { confidence }).interval) === 'down';
}

/**
 * How many of these cases must fall to 0 % for a run of `trials` of each to be found worse, if that is more
 * than half of them; Infinity if not even all of them are enough. Undefined if half of them are.
 */
export function mostMustFall(
  cases: readonly CaseVerdicts[],
  trials: number,
  confidence: number,
): number | undefined {
  const before = cases.filter((one) => scoredTrials(one) > 0).sort((a, b) => caseRate(b) - caseRate(a));
  const isWorse = (fallen: number) => {
    const after = before.map((one, index) => {
      const passed = index < fallen ? 0 : caseRate(one) * trials;
      return { id: one.id, passed, failed: trials - passed, void: 0 };
    });
    return directionOf(compareRates(before, after, { confidence }).interval) === 'down';
  };
  const half = Math.floor(before.length / 2);
  if (isWorse(half)) return undefined;
  for (let fallen = half + 1; fallen <= before.length; fallen++) if (isWorse(fallen)) return fallen;
  return Number.POSITIVE_INFINITY;
}

/**
 * The smallest number of cases, each with `trials` trials, with which a fall from 100 % to 0 % is more than
 * noise; undefined if it is more than `most`.
 */
export function casesToShowWorse(trials: number, confidence: number, most = 100): number | undefined {
  return smallest(most, (cases) => fallIsShown(cases, trials, confidence));
}

/**
 * The smallest number of trials per case with which such a fall is more than noise; undefined above `most`.
 */
export function trialsToShowWorse(cases: number, confidence: number, most = 20): number | undefined {
  return smallest(most, (trials) => fallIsShown(cases, trials, confidence));
}

function fallIsShown(cases: number, trials: number, confidence: number): boolean {
  const all = Array.from({ length: cases }, (_, index) => ({
    id: String(index),
    passed: trials,
    failed: 0,
    void: 0,
  }));
  return couldBeWorse(all, all, confidence);
}

function smallest(most: number, isEnough: (count: number) => boolean): number | undefined {
  for (let count = 1; count <= most; count++) if (isEnough(count)) return count;
  return undefined;
}
