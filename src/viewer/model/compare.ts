import { type ListedTrial, passRate, type Tally, tallyOf, variantsOf } from './grid.ts';

/** One side of a comparison: a batch, or one variant of it. */
export interface Side {
  batch: number;
  variant?: string | undefined;
}

/**
 * What happened to a case. `regressed` and `fixed`: the pass rate changed from one side of a half to the
 * other. `worse` and `better`: it changed less. `only-left`, `only-right`: the other side has no verdict.
 */
export type Change = 'regressed' | 'fixed' | 'worse' | 'better' | 'same' | 'only-left' | 'only-right';

export interface Compared {
  caseName: string;
  /** The variant, where both sides compare all variants. */
  variant?: string | undefined;
  left: CellOfSide;
  right: CellOfSide;
  change: Change;
}

export interface CellOfSide {
  trials: ListedTrial[];
  tally: Tally;
  /** Means over the trials for which they are known. */
  durationMs?: number | undefined;
  costUsd?: number | undefined;
  totalTokens?: number | undefined;
}

export interface Comparison {
  left: CellOfSide;
  right: CellOfSide;
  /** Flips first. */
  rows: Compared[];
}

/** Compares two lists of trials, paired by the case's name, and by variant if both sides have several of the same. */
export function compareTrials(left: readonly ListedTrial[], right: readonly ListedTrial[]): Comparison {
  const [ours, theirs] = [variantsOf(left), variantsOf(right)];
  const byVariant = ours.some((name) => theirs.includes(name)) && (ours.length > 1 || theirs.length > 1);
  const keyOf = ({ caseName, variant }: ListedTrial) =>
    JSON.stringify(byVariant ? [caseName, variant] : [caseName]);
  const pairs = new Map<string, { left: ListedTrial[]; right: ListedTrial[] }>();
  const add = (side: 'left' | 'right', trials: readonly ListedTrial[]) => {
    for (const trial of trials) {
      const key = keyOf(trial);
      const pair = pairs.get(key) ?? { left: [], right: [] };
      pairs.set(key, pair);
      pair[side].push(trial);
    }
  };
  add('left', left);
  add('right', right);
  const rows = [...pairs].map(([key, pair]): Compared => {
    const [caseName = '', variant] = JSON.parse(key) as [string, string?];
    const cells = { left: cellOf(pair.left), right: cellOf(pair.right) };
    return { caseName, variant, ...cells, change: changeOf(cells.left, cells.right) };
  });
  rows.sort((one, other) => order.indexOf(one.change) - order.indexOf(other.change));
  return { left: cellOf([...left]), right: cellOf([...right]), rows };
}

const order: readonly Change[] = ['regressed', 'fixed', 'worse', 'better', 'only-left', 'only-right', 'same'];

function changeOf(left: CellOfSide, right: CellOfSide): Change {
  const [before, after] = [passRate(left.tally), passRate(right.tally)];
  if (before === undefined) return after === undefined ? 'same' : 'only-right';
  if (after === undefined) return 'only-left';
  if (before === after) return 'same';
  if (before >= 0.5 && after < 0.5) return 'regressed';
  if (before < 0.5 && after >= 0.5) return 'fixed';
  return after < before ? 'worse' : 'better';
}

function cellOf(trials: ListedTrial[]): CellOfSide {
  return {
    trials,
    tally: tallyOf(trials),
    durationMs: mean(trials.map(({ durationMs }) => durationMs)),
    costUsd: mean(trials.map(({ summary }) => summary?.costUsd)),
    totalTokens: mean(trials.map(({ summary }) => summary?.totalTokens)),
  };
}

/** The mean of the known numbers; undefined if none is known. */
function mean(numbers: (number | undefined)[]): number | undefined {
  const known = numbers.filter((number) => number !== undefined);
  return known.length === 0 ? undefined : known.reduce((sum, number) => sum + number, 0) / known.length;
}
