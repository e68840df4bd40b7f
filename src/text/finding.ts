import { isOnlyByMcnemar, type RateComparison } from '../stats/compare.ts';
import { casesToShowWorse, trialsToShowWorse } from '../stats/further-trials.ts';
import { plural } from './quantities.ts';

/** What a comparison of pass rates found: B against A. */
export interface FoundDifference {
  finding: 'better' | 'worse' | 'noise' | 'nothing-in-common';
  /** B - A; undefined if they have no case in common. */
  value: number | undefined;
  /** Its interval; undefined for a single case. */
  low?: number | undefined;
  high?: number | undefined;
  /** How many both have. */
  cases: number;
}

/** The result in one sentence. */
export function findingText({ value, low, high, finding, cases }: FoundDifference): string {
  if (value === undefined)
    return 'A and B have no case in common that can be compared, with a verdict on both sides.';
  const over = `over ${plural(cases, 'case')}`;
  const isKnown = low !== undefined && high !== undefined;
  if (finding === 'noise' || !isKnown) {
    const range = isKnown ? ` (${signedPoints(low)} to ${signedPoints(high)})` : '';
    return `No difference can be told from noise: B - A is ${signedPoints(value)} points${range}, ${over}.`;
  }
  const [near, far] = finding === 'worse' ? [-high, -low] : [low, high];
  return `B is ${finding} by ${points(Math.abs(value))} points (${points(near)} to ${points(far)}), ${over}.`;
}

/**
 * Says so if the comparison could not find any difference, whatever the trials gave.
 *
 * @param trials the scored ones of a case, on each side
 */
export function tooFewTexts(
  { cases, finding, confidence }: FoundDifference & { confidence: number },
  trials: readonly [number, number],
): string[] {
  const [ofA, ofB] = trials;
  const fewer = Math.min(ofA, ofB);
  if (finding !== 'noise' || (casesToShowWorse(fewer, confidence) ?? Number.POSITIVE_INFINITY) <= cases)
    return [];
  const of = ofA === ofB ? `${plural(ofA, 'trial')} of each` : `${plural(ofA, 'trial')} of A and ${ofB} of B`;
  return [
    `With ${plural(cases, 'case')} and ${of}, not even 0 % and 100 % can be told apart: ${casesNeeded(cases, fewer, confidence)}.`,
  ];
}

/** What a comparison needs to find a difference. */
export function casesNeeded(cases: number, trials: number, confidence: number): string {
  const moreCases = casesToShowWorse(trials, confidence);
  // The cases are enough, but too few of them passed before.
  if (moreCases !== undefined && moreCases <= cases)
    return `at least ${plural(moreCases, 'case')} that passed before are needed`;
  const moreTrials = trialsToShowWorse(cases, confidence);
  const ways = [
    ...(moreCases === undefined ? [] : [plural(moreCases, 'case')]),
    ...(moreTrials === undefined ? [] : [`${plural(moreTrials, 'trial')} of each`]),
  ];
  return ways.length === 0 ? 'more cases are needed' : `at least ${ways.join(' or ')} are needed`;
}

/** What {@link findingText} does not show, if it finds no difference. */
export function explainedTexts(
  { finding, low, high }: FoundDifference,
  mcnemar: RateComparison['mcnemar'],
): string[] {
  if (finding !== 'noise') return [];
  const notEqual = 'That does not show that they are equal:';
  if (low === undefined || high === undefined)
    return [`${notEqual} a single case does not tell what other cases would give.`];
  return [
    ...(isOnlyByMcnemar({ interval: { low, high }, mcnemar })
      ? [
          "McNemar's test alone finds a difference. With so few cases the interval is the more careful, and " +
            'decides: more cases would settle it.',
        ]
      : []),
    `${notEqual} the true difference may be ${signedPoints(low)} to ${signedPoints(high)} points.`,
  ];
}

/** Below this number of cases, an interval says little. */
const fewCases = 10;

/** A warning if there are few cases. */
export function fewCasesTexts({ cases, finding }: FoundDifference): string[] {
  if (cases >= fewCases || finding === 'nothing-in-common') return [];
  return [`Only ${plural(cases, 'case')}: other cases of the same kind may give another result.`];
}

export function shownP(p: number): string {
  return p < 0.001 ? 'p < 0.001' : `p = ${p.toFixed(3)}`;
}

/** Percentage points with a sign: `+3`, `-12`, `0`; one decimal below 10. */
export function signedPoints(difference: number): string {
  const shown = points(Math.abs(difference));
  if (shown === '0') return '0';
  return `${difference < 0 ? '-' : '+'}${shown}`;
}

function points(difference: number): string {
  const value = difference * 100;
  return String(Number(value.toFixed(value < 10 ? 1 : 0)));
}
