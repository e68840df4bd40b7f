import type { Comparison, SideSummary } from '../../comparison/comparison.ts';
import { type Measure, measures } from '../../comparison/side.ts';
import { casesToShowWorse, trialsToShowWorse } from '../../stats/further-trials.ts';
import type { Interval } from '../../stats/pass-rate.ts';
import { table } from '../../text/fit.ts';
import { ours, type Printable, text } from '../../text/printable.ts';
import { cost, count, duration, plural } from '../../text/quantities.ts';

const shownAs: Record<Measure, { name: string; shown: (value: number) => string }> = {
  durationMs: { name: 'time', shown: duration },
  tokens: { name: 'tokens', shown: (value) => count(Math.round(value)) },
  costUsd: { name: 'cost', shown: cost },
};

/** Median, tail and difference of time, tokens and cost. A number that no trial used is left out. */
export function measureTables({ a, b, measures: differences }: Comparison): Printable[] {
  const used = measures.filter((measure) => isUsed(a, measure) || isUsed(b, measure));
  if (used.length === 0) return [];
  const rows = used.flatMap((measure) =>
    [0.5, 0.9, 0.95].map((level, index) => [
      ours(`${shownAs[measure].name}, ${level === 0.5 ? 'median' : `${level * 100} %`}`),
      ours(quantileCell(a, measure, index)),
      ours(quantileCell(b, measure, index)),
    ]),
  );
  const isCut = used.some((measure) =>
    [a, b].some(({ quantiles }) =>
      quantiles[measure].some(({ low, high }) => (low === undefined) !== (high === undefined)),
    ),
  );
  return [
    ours(''),
    table(['per trial', 'A', 'B'], rows),
    ...(isCut ? [ours('?: too few trials for a bound on this side.')] : []),
    ours(''),
    table(
      ['B - A, by case', 'mean', 'median'],
      used.map((measure) => {
        const { meanDifference, medianDifference, meanInterval, medianInterval } = differences[measure];
        return [
          ours(shownAs[measure].name),
          ours(differenceCell(measure, meanDifference, meanInterval)),
          ours(differenceCell(measure, medianDifference, medianInterval)),
        ];
      }),
    ),
  ];
}

function isUsed({ quantiles }: SideSummary, measure: Measure): boolean {
  return quantiles[measure].some(({ value }) => value > 0);
}

function quantileCell({ quantiles }: SideSummary, measure: Measure, index: number): string {
  const found = quantiles[measure][index];
  const { shown } = shownAs[measure];
  if (!found) return '–';
  // With too few trials for either bound, there is no interval.
  if (found.low === undefined && found.high === undefined) return shown(found.value);
  return `${shown(found.value)} (${rangeOf(found, shown)})`;
}

function differenceCell(measure: Measure, value: number | undefined, interval: Interval | undefined): string {
  if (value === undefined) return '–';
  const shown = (one: number) => {
    const size = shownAs[measure].shown(Math.abs(one));
    // What rounds to nothing has no sign.
    if (size === shownAs[measure].shown(0) || Number(size.replace('$', '')) === 0) return size;
    return `${one < 0 ? '-' : '+'}${size}`;
  };
  return interval ? `${shown(value)} (${rangeOf(interval, shown)})` : shown(value);
}

/** Says so if the comparison could not find any difference, whatever the trials gave. */
export function tooFewOf(comparison: Comparison): Printable[] {
  const { cases, finding, confidence } = comparison.difference;
  const trials = trialsOfEach(comparison);
  if (finding !== 'noise' || (casesToShowWorse(trials, confidence) ?? Number.POSITIVE_INFINITY) <= cases)
    return [];
  const [ofA, ofB] = trialsOfSides(comparison);
  const of = ofA === ofB ? `${plural(ofA, 'trial')} of each` : `${plural(ofA, 'trial')} of A and ${ofB} of B`;
  return [
    text`With ${plural(cases, 'case')} and ${ours(of)}, not even 0 % and 100 % can be told apart: ${casesNeeded(cases, trials, confidence)}.`,
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

/** The scored trials of a case on the side that has fewer, rounded up. At least one. */
export function trialsOfEach(comparison: Comparison): number {
  return Math.min(...trialsOfSides(comparison));
}

function trialsOfSides({ a, b, difference }: Comparison): [number, number] {
  const cases = Math.max(1, difference.cases);
  const ofCase = ({ passRate }: Comparison['a']) =>
    Math.max(1, Math.ceil(passRate ? (passRate.passed + passRate.failed) / cases : 0));
  return [ofCase(a), ofCase(b)];
}

/** `12 to 34`. */
export function rangeOf(
  { low, high }: Partial<Interval>,
  shown: (value: number) => string,
  missing = '?',
): string {
  return `${low === undefined ? missing : shown(low)} to ${high === undefined ? missing : shown(high)}`;
}
