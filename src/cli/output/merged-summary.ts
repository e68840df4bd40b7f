import {
  type BatchSummary,
  elapsedOf,
  type RunSummary,
  type TrialNumbers,
  type TrialSummary,
} from './summary.ts';

/** The batches of one command, with the runs of the same case and variant as one. */
export interface MergedSummary<Trial extends TrialNumbers = TrialSummary> extends BatchSummary<Trial> {
  /** All batches; `batchId` is the first. */
  batchIds: string[];
  /** The id of the set that the batches are; absent for batches of `--trials auto`. */
  set?: string;
  runs: MergedRun<Trial>[];
}

interface MergedRun<Trial extends TrialNumbers> extends RunSummary<Trial> {
  trials: MergedTrial<Trial>[];
}

/** Trials are renumbered, through all batches. */
type MergedTrial<Trial> = Trial & {
  /** The trial at the service and in the ledger. */
  recorded: { batchId: string; runId: string; ordinal: number };
};

/** Merges the summaries of batches of one suite. There must be at least one. */
export function mergedSummary<Trial extends TrialNumbers>(
  summaries: readonly [BatchSummary<Trial>, ...BatchSummary<Trial>[]],
  set?: string,
): MergedSummary<Trial> {
  const [first] = summaries;
  const runs = summaries.flatMap(({ batchId, runs }) =>
    runs.map((run): MergedRun<Trial> => {
      const trials = run.trials.map((trial) => {
        const { ordinal } = trial;
        return { ...trial, recorded: { batchId, runId: run.id, ordinal } };
      });
      return { ...run, trials };
    }),
  );
  const alike = Map.groupBy(runs, (run) => JSON.stringify([run.case, run.variant]));
  return {
    ...first,
    ...totals(summaries),
    ...elapsedOf(summaries),
    unreported: summaries.reduce((sum, { unreported }) => sum + unreported, 0),
    batchIds: summaries.map(({ batchId }) => batchId),
    ...(set !== undefined && { set }),
    runs: [...alike.values()].map(([run, ...more]) => mergedRun(run as MergedRun<Trial>, more)),
  };
}

function mergedRun<Trial extends TrialNumbers>(
  first: MergedRun<Trial>,
  more: readonly MergedRun<Trial>[],
): MergedRun<Trial> {
  const all = [first, ...more];
  return {
    ...first,
    ...totals(all),
    notRun: all.reduce((sum, { notRun }) => sum + notRun, 0),
    commands: all.reduce((sum, { commands }) => sum + commands, 0),
    trials: all.flatMap(({ trials }) => trials).map((trial, ordinal) => ({ ...trial, ordinal })),
  };
}

type Totals = Pick<
  RunSummary,
  'passed' | 'failed' | 'void' | 'passRate' | 'durationMs' | 'tokens' | 'costUsd'
>;

function totals(parts: readonly Totals[]): Totals {
  const sum = (field: keyof Totals) =>
    parts.reduce<number | undefined>((total, part) => {
      const value = part[field];
      return total === undefined || value === undefined ? undefined : total + value;
    }, 0);
  const [passed = 0, failed = 0] = [sum('passed'), sum('failed')];
  const scored = passed + failed;
  return {
    ...{ passed, failed, void: sum('void') ?? 0, durationMs: sum('durationMs') ?? 0 },
    passRate: scored === 0 ? undefined : passed / scored,
    tokens: sum('tokens'),
    costUsd: sum('costUsd'),
  };
}
