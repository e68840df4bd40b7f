import {
  type Comparison,
  type Measure,
  measures,
  type SideSummary,
  trialsOfSides,
} from '../../comparison/compare-sides.ts';
import type { ComparedBatches } from '../../comparison/comparison.ts';
import { unknownPartsText, variantChangesText } from '../../record/fingerprint.ts';
import type { Interval } from '../../stats/pass-rate.ts';
import { explainedTexts, fewCasesTexts, findingText, shownP, tooFewTexts } from '../../text/finding.ts';
import { table } from '../../text/fit.ts';
import {
  type Optional,
  ours,
  type Printable,
  present,
  stack,
  styled,
  text,
  type Value,
} from '../../text/printable.ts';
import { changeWord, cost, count, duration, firstNames, percent, plural } from '../../text/quantities.ts';

/** How many changed cases are listed; `--json` has all. */
const listed = 20;
/** How many names a line has. */
const named = 10;
/** How many versions of a harness or a profile are named. */
const shownVersions = 3;

/**
 * What a comparison says, for people: three lines for each variant, and what differs besides the work.
 *
 * @param details everything else too
 */
export function comparisonText(compared: ComparedBatches, { details = false } = {}): Printable {
  const { comparisons, variantsOnlyA, variantsOnlyB } = compared;
  const alone = [
    ...namesLine(variantsOnlyA, ours('Variants only in A, not compared: ')),
    ...namesLine(variantsOnlyB, ours('Variants only in B, not compared: ')),
  ];
  if (!details) return stack([...severally(comparisons, headline), ...alone]);
  const [first] = comparisons;
  const several = first && comparisons.length > 1;
  return stack([
    ...severally(comparisons, sections),
    ours(''),
    ...alone,
    several && severalCompared(comparisons.length, first),
    text`In ${ours(several ? 'all other brackets' : 'brackets')}: 95 % intervals, for other cases like these. See docs/comparing.md.`,
  ]);
}

/** What there is to say of each comparison, with an empty line between two. */
function severally(
  comparisons: readonly Comparison[],
  said: (comparison: Comparison) => Optional<Printable>[],
): Optional<Printable>[] {
  return comparisons.flatMap((one, index) => [index > 0 && ours(''), ...said(one)]);
}

/** How many results cannot be read, on both sides. */
export function unreadIn({ comparisons }: ComparedBatches): number {
  return comparisons.reduce((sum, { a, b }) => sum + a.unreadable + b.unreadable, 0);
}

/** Both sides and the finding, and what makes the comparison one of other things. */
function headline(comparison: Comparison): Optional<Printable>[] {
  const { a, b, difference, variantChanges = [], unknownParts = [] } = comparison;
  // Trials of an older Offsite do not say what their models were.
  const unknown = unknownPartsText(unknownParts);
  const found = ours(findingText(difference));
  const isFound = difference.finding === 'worse' || difference.finding === 'better';
  return [
    text`A  ${sideName(a)}: ${rateOf(a)}`,
    text`B  ${sideName(b)}: ${rateOf(b)}`,
    isFound ? styled('bold', found) : found,
    ...tooFewTexts(difference, trialsOfSides(comparison)).map(ours),
    ...redefinedLine(comparison),
    ...namesLine(comparison.onlyA, ours('With a verdict only in A, not compared: ')),
    ...namesLine(comparison.onlyB, ours('With a verdict only in B, not compared: ')),
    // Of one variant: the difference may come from this.
    variantChanges.length > 0 && text`B also has another ${variantChangesText(variantChanges)}.`,
    unknown !== undefined && text`${unknown}`,
  ];
}

function rateOf({ passRate, void: missing }: SideSummary): Printable {
  const voided = missing > 0 ? ours(`, ${missing} void`) : ours('');
  if (!passRate) return text`no verdict${voided}`;
  const { rate, passed, failed } = passRate;
  // Where cases have different numbers of trials with a verdict, the rate is not that of the trials.
  const mean = percent(rate) === percent(passed / (passed + failed)) ? '' : ', the mean of its cases';
  return text`${ours(percent(rate) + mean)}, ${passed} of ${plural(passed + failed, 'trial')} passed${voided}`;
}

function severalCompared(variants: number, { difference }: Comparison): Printable {
  const level = `${Number((difference.confidence * 100).toFixed(2))} %`;
  return stack([
    text`${variants} variants are compared. Each difference has a ${ours(level)} interval, so that chance`,
    ours('finds a difference in one of them in at most 5 of 100 comparisons.'),
  ]);
}

function sections(comparison: Comparison): Optional<Printable>[] {
  const { a, b, difference } = comparison;
  return [
    ...headline(comparison),
    ours(''),
    rateTable(a, b),
    ...apart([...explainedTexts(difference, comparison.mcnemar), ...fewCasesTexts(difference)].map(ours)),
    ...changesOf(comparison),
    ...noiseOf(a, b),
    ...passAtKTable(a, b),
    ...measureTables(comparison),
    ...warnings(comparison),
  ];
}

function sideName({ batches, marks, variant, baseline }: SideSummary): Printable {
  const marked = marks.length === 0 ? ours('') : text` (${marks.join('; ')})`;
  if (!baseline) return text`${batches.join(' + ')} · ${variant}${marked}`;
  const { runs, harnessVersions, profileVersions } = baseline;
  const harness = versions(ours('harness'), harnessVersions);
  const profile = versions(ours('profile'), profileVersions);
  return text`baseline · ${variant}, ${plural(runs, 'run')}${harness}${profile}`;
}

function versions(of: Printable, known: readonly string[]): Printable {
  if (known.length === 0) return ours('');
  return text`, ${of} ${firstNames(known, shownVersions)}`;
}

function rateTable(a: SideSummary, b: SideSummary): Printable {
  const row = (name: string, { passRate, void: missing }: SideSummary): Value[] => [
    ours(name),
    passRate ? ours(`${percent(passRate.rate)} (${rangeOf(passRate.interval, percentNumber)})`) : ours('–'),
    String(passRate?.cases ?? 0),
    String(passRate?.passed ?? 0),
    String(passRate?.failed ?? 0),
    missing > 0 ? styled('yellow', missing) : '0',
  ];
  return table(
    ['', 'pass rate', { right: 'cases' }, { right: 'passed' }, { right: 'failed' }, { right: 'void' }],
    [row('A', a), row('B', b)],
  );
}

function changesOf({ changes, mcnemar }: Comparison): Optional<Printable>[] {
  if (changes.length === 0) return [];
  const share = ({ passed, scored }: { passed: number; scored: number }) => `${passed} of ${scored}`;
  const rows = changes.slice(0, listed).map(({ case: name, a, b }): Value[] => {
    const word = changeWord(a.passed / a.scored, b.passed / b.scored);
    return [name, share(a), share(b), word === 'worse' ? styled('red', ours(word)) : ours(word)];
  });
  const more = changes.length - rows.length;
  const worse = plural(mcnemar.worse, 'case');
  const test = ours(`McNemar's test: ${shownP(mcnemar.midP)}`);
  return [
    ours(''),
    table(['case', 'A passed', 'B passed', ''], rows),
    more > 0 && text`and ${more} more: --json lists all`,
    ours(''),
    text`By majority of trials, ${worse} got worse and ${mcnemar.better} better; ${test}.`,
    mcnemar.tied.length > 0 &&
      text`${plural(mcnemar.tied.length, 'case')} without a majority on a side not counted there.`,
  ];
}

function noiseOf(a: SideSummary, b: SideSummary): Printable[] {
  const lines = sidesOf(a, b).flatMap(([name, { noise }]) => {
    const { repeated, flipping, luck = 1 } = noise;
    if (repeated === 0) return [];
    const flip = text`${flipping.length} of ${plural(repeated, 'case')} flip by themselves`;
    const again = `run again, luck alone could move the pass rate up to ${(luck * 100).toFixed(1)} points`;
    return [text`${ours(name)}: ${flip} so far; ${ours(again)}.`];
  });
  const unknown = ours(
    'No case has repeats, so the noise of a single case is unknown. Run with more trials.',
  );
  return apart(lines.length > 0 ? lines : [unknown]);
}

function sidesOf(a: SideSummary, b: SideSummary): [name: string, side: SideSummary][] {
  return [
    ['A', a],
    ['B', b],
  ];
}

function passAtKTable(a: SideSummary, b: SideSummary): Printable[] {
  const highest = Math.max(a.passAtK.length, b.passAtK.length);
  if (highest < 2) return [];
  const shown = [...Array(highest).keys()].map((index) => index + 1).filter((k) => isShown(k, highest));
  const cell = ({ passAtK }: SideSummary, k: number, which: 'any' | 'all') => {
    const found = passAtK[k - 1];
    if (!found) return '–';
    const interval = which === 'any' ? found.anyInterval : found.allInterval;
    return `${percent(found[which])} (${rangeOf(interval, percentNumber)})`;
  };
  return [
    ours(''),
    table(
      [{ right: 'k' }, 'A pass@k', 'B pass@k', 'A pass^k', 'B pass^k'],
      shown.map((k) => {
        return [String(k), cell(a, k, 'any'), cell(b, k, 'any'), cell(a, k, 'all'), cell(b, k, 'all')];
      }),
    ),
    ours('pass@k: at least one of k trials passes. pass^k: all k pass.'),
  ];
}

/** Whether the table of pass@k has a row for this k. */
function isShown(k: number, highest: number): boolean {
  return k <= 3 || k === highest || k % 5 === 0;
}

/** Part of the headline: a pass rate that rose since a check was loosened is no finding. */
function redefinedLine({ redefined = [], changedParts = {} }: Comparison): Printable[] {
  const names = redefined.map((id) => {
    const parts = Object.hasOwn(changedParts, id) ? changedParts[id] : undefined;
    return parts === undefined ? id : `${id} (${parts.join(', ')})`;
  });
  const cases = plural(redefined.length, 'case');
  return namesLine(names, text`Not compared, since not all trials ask and check the same: ${cases}: `);
}

function warnings({ a, b }: Comparison): Printable[] {
  const lines = sidesOf(a, b).flatMap(([name, { void: missing, unfinished }]) => [
    missing > 0 && text`${ours(name)}: ${plural(missing, 'void trial')} left out.`,
    unfinished > 0 && text`${ours(name)}: ${plural(unfinished, 'trial')} without a result yet.`,
  ]);
  return apart(present(lines));
}

/** Lines after an empty one; none if there are none. */
function apart(lines: readonly Printable[]): Printable[] {
  return lines.length > 0 ? [ours(''), ...lines] : [];
}

function namesLine(names: readonly string[], before: Printable): Printable[] {
  if (names.length === 0) return [];
  return [text`${before}${firstNames(names, named)}`];
}

function percentNumber(rate: number): string {
  return String(Math.round(rate * 100));
}

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

/** `12 to 34`. */
export function rangeOf(
  { low, high }: Partial<Interval>,
  shown: (value: number) => string,
  missing = '?',
): string {
  return `${low === undefined ? missing : shown(low)} to ${high === undefined ? missing : shown(high)}`;
}
