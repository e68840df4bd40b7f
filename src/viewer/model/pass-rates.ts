import { passRate } from './grid.ts';
import type { BatchRow } from './shapes.ts';

/** The pass rates of all batches of a suite, oldest first. */
export interface SuiteRates {
  suite: string;
  points: { batch: BatchRow; rate: number }[];
}

/** The suites with a batch that has a verdict; the suite with the newest batch first. */
export function passRates(batches: readonly BatchRow[]): SuiteRates[] {
  const suites = new Map<string, SuiteRates>();
  for (const batch of batches) {
    const rate = passRate(batch);
    if (rate === undefined) continue;
    const suite = suites.get(batch.suite) ?? { suite: batch.suite, points: [] };
    suites.set(batch.suite, suite);
    suite.points.push({ batch, rate });
  }
  const sorted = [...suites.values()];
  for (const { points } of sorted) points.sort((one, other) => one.batch.startedAt - other.batch.startedAt);
  const newest = ({ points }: SuiteRates) => points.at(-1)?.batch.startedAt ?? 0;
  return sorted.sort((one, other) => newest(other) - newest(one));
}
