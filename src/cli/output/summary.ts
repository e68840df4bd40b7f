import { styleText } from 'node:util';
import type { FinishedBatch, FinishedTrial } from '../../agent/batch.ts';
import type { PendingReport } from '../../ledger/outbox.ts';
import { duration, percent } from './quantities.ts';
import { table } from './table.ts';

/** What a batch came to, run by run. */
export interface BatchSummary {
  batchId: string;
  service: string;
  /** Passed of scored, 0 to 1; absent where no trial was scored. */
  passRate: number | undefined;
  passed: number;
  failed: number;
  void: number;
  /** Trials whose results the service has not taken yet. */
  unreported: number;
  runs: RunSummary[];
}

interface RunSummary {
  id: string;
  case: string;
  variant: string;
  model: string;
  passed: number;
  failed: number;
  void: number;
  passRate: number | undefined;
  /** Milliseconds: the sum over the run's trials. */
  durationMs: number;
  /** Commands the harness ran, over the run's trials. */
  commands: number;
  trials: TrialSummary[];
}

interface TrialSummary {
  ordinal: number;
  verdict: string;
  reported: boolean;
  durationMs: number;
  commands: number;
  cause?: { kind: string; phase: string; message: string } | undefined;
  filesChanged: string[];
}

/** @param pending the reports that the service has not taken */
export function summaryOf(
  batch: FinishedBatch,
  service: string,
  pending: readonly PendingReport[],
): BatchSummary {
  const isReported = (trial: FinishedTrial) =>
    !pending.some(({ runId, ordinal }) => runId === trial.run.id && ordinal === trial.ordinal);
  const runs = batch.runs.map((run): RunSummary => {
    const trials = batch.trials.filter((trial) => trial.run.id === run.id);
    return {
      id: run.id,
      case: run.case.request.id,
      variant: run.variant.name,
      model: run.variant.model,
      ...tally(trials),
      durationMs: trials.reduce((sum, { result }) => sum + result.finishedAt - result.startedAt, 0),
      commands: trials.reduce((sum, { result }) => sum + (result.trajectory?.length ?? 0), 0),
      trials: trials.map((trial) => trialSummary(trial, isReported(trial))),
    };
  });
  return {
    batchId: batch.id,
    service,
    ...tally(batch.trials),
    unreported: batch.trials.filter((trial) => !isReported(trial)).length,
    runs,
  };
}

function trialSummary({ ordinal, result }: FinishedTrial, reported: boolean): TrialSummary {
  const { cause } = result;
  return {
    ordinal,
    verdict: result.verdict,
    reported,
    durationMs: result.finishedAt - result.startedAt,
    commands: result.trajectory?.length ?? 0,
    ...(cause && { cause: { kind: cause.kind, phase: cause.phase, message: cause.message } }),
    filesChanged: result.filesChanged ?? [],
  };
}

function tally(trials: readonly FinishedTrial[]) {
  const count = (verdict: string) => trials.filter(({ result }) => result.verdict === verdict).length;
  const passed = count('passed');
  const failed = count('failed');
  const scored = passed + failed;
  return { passed, failed, void: count('void'), passRate: scored === 0 ? undefined : passed / scored };
}

/** The closing table. */
export function summaryTable(summary: BatchSummary): string {
  const cells = (row: Pick<RunSummary, 'passed' | 'failed' | 'void' | 'passRate'>) => [
    String(row.passed),
    row.failed > 0 ? styleText('red', String(row.failed)) : '0',
    row.void > 0 ? styleText('yellow', String(row.void)) : '0',
    percent(row.passRate),
  ];
  const sum = (field: 'durationMs' | 'commands') =>
    summary.runs.reduce((total, run) => total + run[field], 0);
  return table(
    [
      { title: 'run' },
      { title: 'passed', align: 'right' },
      { title: 'failed', align: 'right' },
      { title: 'void', align: 'right' },
      { title: 'pass rate', align: 'right' },
      { title: 'time', align: 'right' },
      { title: 'commands', align: 'right' },
    ],
    [
      ...summary.runs.map((run) => [
        `${run.case} · ${run.variant}`,
        ...cells(run),
        duration(run.durationMs),
        String(run.commands),
      ]),
      ['all', ...cells(summary), duration(sum('durationMs')), String(sum('commands'))],
    ],
  );
}
