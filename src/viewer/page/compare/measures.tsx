import { type BriefComparison, type Measure, measures } from '../../../comparison/compare-sides.ts';
import type { MeasureComparison } from '../../../stats/compare.ts';
import { signedPoints } from '../../../text/finding.ts';
import { cost, count, duration, percent } from '../parts/quantities.ts';

export const shownAs: Record<Measure, { name: string; shown: (value: number) => string }> = {
  durationMs: { name: 'Time', shown: duration },
  tokens: { name: 'Tokens', shown: (value) => count(Math.round(value)) },
  costUsd: { name: 'Cost', shown: cost },
};

/** The measures of a comparison, without tokens and cost if neither side used a model. */
export function shownMeasures(compared: BriefComparison['measures']): Measure[] {
  const { a, b } = compared.tokens;
  return measures.filter((measure) => measure === 'durationMs' || a !== 0 || b !== 0);
}

/** A number with its sign. */
export function delta(value: number | undefined, shown: (value: number) => string): string {
  if (value === undefined) return '–';
  if (value === 0) return '0';
  return `${value < 0 ? '-' : '+'}${shown(Math.abs(value))}`;
}

/** Pass rate, time, tokens and cost of both sides, with 95 % intervals of the differences. */
export function Measures({ a, b, difference, measures: compared }: BriefComparison) {
  const { value, low, high } = difference;
  // Without a case that can be compared, a side's rate is of all its cases.
  const inCommon = (side: typeof a) => (value === undefined ? undefined : side.passRate);
  return (
    <div class="measures" role="region" aria-label="Means" tabIndex={0}>
      <table>
        <caption class="unseen">Means over the cases that both sides have</caption>
        <thead>
          <tr>
            <th scope="col">Mean of cases</th>
            <th scope="col">A</th>
            <th scope="col">B</th>
            <th scope="col">B - A</th>
            <th scope="col">Interval</th>
          </tr>
        </thead>
        <tbody>
          <tr>
            <th scope="row">Pass rate</th>
            <td>{percent(inCommon(a)?.rate)}</td>
            <td>{percent(inCommon(b)?.rate)}</td>
            <td>{value === undefined ? '–' : `${signedPoints(value)} points`}</td>
            <td>
              {low === undefined || high === undefined ? (
                '–'
              ) : (
                <Interval low={signedPoints(low)} high={signedPoints(high)} />
              )}
            </td>
          </tr>
          {shownMeasures(compared).map((measure) => (
            <MeasureRow key={measure} measure={measure} compared={compared[measure]} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function MeasureRow({ measure, compared }: { measure: Measure; compared: MeasureComparison }) {
  const { a, b, meanDifference, meanInterval } = compared;
  const { name, shown } = shownAs[measure];
  return (
    <tr>
      <th scope="row">{name}</th>
      <td>{a === undefined ? '–' : shown(a)}</td>
      <td>{b === undefined ? '–' : shown(b)}</td>
      <td>{delta(meanDifference, shown)}</td>
      <td>
        {meanInterval ? (
          <Interval low={delta(meanInterval.low, shown)} high={delta(meanInterval.high, shown)} />
        ) : (
          '–'
        )}
      </td>
    </tr>
  );
}

/** Two numbers that a narrow table puts on two lines. */
function Interval({ low, high }: { low: string; high: string }) {
  return (
    <>
      <span>{low}</span> to <span>{high}</span>
    </>
  );
}
