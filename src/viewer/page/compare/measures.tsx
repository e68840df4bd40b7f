import type { MeasureComparison } from '../../../stats/compare.ts';
import { type ComparedTrials, type Measure, measures } from '../../model/compare.ts';
import { cost, count, duration, percent } from '../parts/quantities.ts';
import { signed } from './finding.tsx';

export const shownAs: Record<Measure, { name: string; shown: (value: number) => string }> = {
  durationMs: { name: 'Time', shown: duration },
  totalTokens: { name: 'Tokens', shown: (value) => count(Math.round(value)) },
  costUsd: { name: 'Cost', shown: cost },
};

/** A number with its sign. */
export function delta(value: number | undefined, shown: (value: number) => string): string {
  if (value === undefined) return '–';
  if (value === 0) return '0';
  return `${value < 0 ? '−' : '+'}${shown(Math.abs(value))}`;
}

/** Pass rate, time, tokens and cost of both sides, with 95 % intervals of the differences. */
export function Measures({ compared: { rates, measures: compared } }: { compared: ComparedTrials }) {
  const { interval } = rates;
  return (
    <div class="measures" role="region" aria-label="Means" tabIndex={0}>
      <table>
        <caption class="unseen">Means over the cases that both sides have</caption>
        <thead>
          <tr>
            <th scope="col">Mean of cases</th>
            <th scope="col">A</th>
            <th scope="col">B</th>
            <th scope="col">B − A</th>
            <th scope="col">Interval</th>
          </tr>
        </thead>
        <tbody>
          <tr>
            <th scope="row">Pass rate</th>
            <td>{percent(rates.a)}</td>
            <td>{percent(rates.b)}</td>
            <td>{rates.difference === undefined ? '–' : `${signed(rates.difference)} points`}</td>
            <td>{interval ? `${signed(interval.low)} to ${signed(interval.high)}` : '–'}</td>
          </tr>
          {measures.map((measure) => (
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
        {meanInterval ? `${delta(meanInterval.low, shown)} to ${delta(meanInterval.high, shown)}` : '–'}
      </td>
    </tr>
  );
}
