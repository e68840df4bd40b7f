import type { Comparison, SideSummary } from '../../comparison/comparison.ts';
import { type Measure, measures } from '../../comparison/side.ts';
import type { Interval } from '../../stats/interval.ts';
import { ours, type Printable } from '../../text/printable.ts';
import { cost, count, duration } from '../../text/quantities.ts';
import { table } from '../../text/table.ts';
import { rangeOf } from './comparison-words.ts';

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
    table([{ title: 'per trial' }, { title: 'A' }, { title: 'B' }], rows),
    ...(isCut ? [ours('?: too few trials for a bound on this side.')] : []),
    ours(''),
    table(
      [{ title: 'B - A, by case' }, { title: 'mean' }, { title: 'median' }],
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
