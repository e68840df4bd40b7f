import type { BatchInList, BatchRow, TrialFigures, TrialRow } from './shapes.ts';

/** A trial with its summary, once that is known. */
export interface GridTrial extends TrialRow {
  summary?: TrialFigures | undefined;
}

export interface GridRow {
  caseId: string;
  caseName: string;
  /** The trials of each variant, in the order of the grid's variants. */
  cells: GridTrial[][];
}

/** A batch as cases times variants. */
export interface Grid {
  variants: string[];
  rows: GridRow[];
}

/**
 * The grid of a list of trials. Cases and variants keep the order in which the list names them first.
 *
 * @param variants the columns, if they must not depend on the list
 */
export function gridOf(trials: readonly GridTrial[], variants = variantsOf(trials)): Grid {
  const column = new Map(variants.map((name, index) => [name, index]));
  const rows = new Map<string, GridRow>();
  for (const trial of trials) {
    let row = rows.get(trial.caseId);
    if (!row) {
      row = { caseId: trial.caseId, caseName: trial.caseName, cells: variants.map(() => []) };
      rows.set(trial.caseId, row);
    }
    row.cells[column.get(trial.variant) ?? 0]?.push(trial);
  }
  return { variants: [...variants], rows: [...rows.values()] };
}

export function variantsOf(trials: readonly { variant: string }[]): string[] {
  return [...new Set(trials.map(({ variant }) => variant))];
}

export interface Tally {
  passed: number;
  failed: number;
  void: number;
  unfinished: number;
}

export function tallyOf(trials: readonly Pick<TrialRow, 'verdict'>[]): Tally {
  const tally = { passed: 0, failed: 0, void: 0, unfinished: 0 };
  for (const { verdict } of trials) tally[verdict ?? 'unfinished'] += 1;
  return tally;
}

/** The share of passed trials among those that passed or failed; undefined if there are none. */
export function passRate({ passed, failed }: Pick<Tally, 'passed' | 'failed'>): number | undefined {
  return passed + failed === 0 ? undefined : passed / (passed + failed);
}

/** The pass rates of the whole batches of a suite, oldest first. */
export interface SuiteRates {
  suite: string;
  points: { batch: BatchRow; rate: number }[];
}

/** The suites with a whole batch that has a verdict; the suite with the newest batch first. */
export function passRates(batches: readonly BatchInList[]): SuiteRates[] {
  const suites = new Map<string, SuiteRates>();
  for (const batch of batches) {
    const rate = passRate(batch);
    if (rate === undefined || !batch.isWhole) continue;
    const suite = suites.get(batch.suite) ?? { suite: batch.suite, points: [] };
    suites.set(batch.suite, suite);
    suite.points.push({ batch, rate });
  }
  const sorted = [...suites.values()];
  for (const { points } of sorted) points.sort((one, other) => one.batch.startedAt - other.batch.startedAt);
  const newest = ({ points }: SuiteRates) => points.at(-1)?.batch.startedAt ?? 0;
  return sorted.sort((one, other) => newest(other) - newest(one));
}
