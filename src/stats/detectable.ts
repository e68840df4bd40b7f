import { type CaseVerdicts, scoredTrials } from './cases.ts';
import { compareRates, directionOf } from './compare.ts';

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
