import type { BatchInList, BatchRow, TrialRow } from './shapes.ts';

export interface GridRow {
  caseId: string;
  caseName: string;
  /** The trials of each variant, in the order of the grid's variants. */
  cells: TrialRow[][];
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
export function gridOf(trials: readonly TrialRow[], variants = variantsOf(trials)): Grid {
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
  const whole = batches.flatMap((batch) => {
    const rate = passRate(batch);
    return rate === undefined || !batch.isWhole ? [] : { batch, rate };
  });
  const bySuite = Map.groupBy(whole, ({ batch }) => batch.suite);
  const suites = [...bySuite].map(([suite, points]) => ({
    suite,
    points: points.sort((one, other) => one.batch.startedAt - other.batch.startedAt),
  }));
  const newest = ({ points }: SuiteRates) => points.at(-1)?.batch.startedAt ?? 0;
  return suites.sort((one, other) => newest(other) - newest(one));
}
