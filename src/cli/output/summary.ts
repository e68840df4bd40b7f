import type { FinishedBatch, FinishedTrial } from '../../agent/run-batch.ts';
import { printedText } from '../../bounds/anybody.ts';
import type { PendingReport } from '../../ledger/outbox.ts';
import { failuresOf } from '../../record/failures.ts';
import { commandsOf } from '../../record/timeline.ts';
import { usageOf } from '../../record/usage.ts';
import { ours, type Printable, stack, styled, text } from '../../text/printable.ts';
import { table } from '../../text/table.ts';
import type { SystemChanges } from '../../trial/system-changes.ts';
import { cost, count, duration, percent, plural } from './quantities.ts';

/** The results of a batch, run by run. */
export interface BatchSummary {
  batchId: string;
  service: string;
  /** Passed of scored trials, 0 to 1; absent if no trial was scored. */
  passRate: number | undefined;
  passed: number;
  failed: number;
  void: number;
  /** Trials whose results the service has not accepted yet. */
  unreported: number;
  /** Milliseconds: the sum over the trials. */
  durationMs: number;
  /** Cost of the agent's model in all trials; absent unless it is known for each trial. */
  tokens: number | undefined;
  costUsd: number | undefined;
  runs: RunSummary[];
}

export interface RunSummary {
  id: string;
  case: string;
  variant: string;
  model: string;
  passed: number;
  failed: number;
  void: number;
  /** Void trials that did not run, because the variant's harness did not work. */
  notRun: number;
  passRate: number | undefined;
  /** Milliseconds: the sum over the run's trials. */
  durationMs: number;
  /** Commands that the harness ran, summed over the run's trials. */
  commands: number;
  /** Of the agent's model; absent unless it is known for each trial. */
  tokens: number | undefined;
  costUsd: number | undefined;
  /** As the harness reports it; absent if it reports none. */
  harnessVersion: string | undefined;
  trials: TrialSummary[];
}

export interface TrialSummary {
  ordinal: number;
  verdict: string;
  reported: boolean;
  durationMs: number;
  commands: number;
  tokens: number | undefined;
  costUsd: number | undefined;
  /** The checks that failed, one line each. */
  failures: string[];
  failuresCount: number;
  failuresTruncated: boolean;
  cause?: { kind: string; phase: string; message: string } | undefined;
  filesChanged: string[];
  filesChangedCount: number;
  filesChangedTruncated: boolean;
  /** Where the trial was graded: in a fresh sandbox, or in the same one as the harness. */
  verifiedIn?: 'fresh' | 'same';
  validatedIn?: 'fresh' | 'same';
  /** What changed outside the workspace where verify ran. */
  systemChanges?: SystemChanges;
  /** Protections that its sandboxes lacked; absent if they lacked none. */
  sandboxLacks?: string[];
}

/** @param pending the reports that the service has not accepted */
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
      notRun: trials.filter(({ result }) => result.notRun).length,
      ...totals(trials.map((trial) => trialSummary(trial, isReported(trial)))),
      harnessVersion: trials.find(({ result }) => result.harnessVersion !== undefined)?.result.harnessVersion,
    };
  });
  const { durationMs, tokens, costUsd } = totals(runs.flatMap(({ trials }) => trials));
  return {
    batchId: batch.id,
    service,
    ...tally(batch.trials),
    unreported: batch.trials.filter((trial) => !isReported(trial)).length,
    durationMs,
    tokens,
    costUsd,
    runs,
  };
}

function trialSummary({ ordinal, result }: FinishedTrial, reported: boolean): TrialSummary {
  const { cause } = result;
  const failures = failuresOf(result);
  const filesChanged = (result.filesChanged ?? []).slice(0, printedText.count.listed);
  const filesChangedCount = result.filesChangedCount ?? result.filesChanged?.length ?? 0;
  const usage = usageOf(result);
  return {
    ordinal,
    verdict: result.verdict,
    reported,
    durationMs: result.finishedAt - result.startedAt,
    commands: commandsOf(result)?.length ?? 0,
    tokens: usage?.totalTokens,
    costUsd: usage?.costUsd,
    failures: failures.slice(0, printedText.count.listed),
    failuresCount: failures.length,
    failuresTruncated: failures.length > printedText.count.listed,
    ...(cause && { cause: { kind: cause.kind, phase: cause.phase, message: cause.message } }),
    filesChanged,
    filesChangedCount,
    filesChangedTruncated: filesChangedCount > filesChanged.length,
    ...(result.verifiedIn && { verifiedIn: result.verifiedIn }),
    ...(result.validatedIn && { validatedIn: result.validatedIn }),
    ...(result.systemChanges && { systemChanges: result.systemChanges }),
    ...(result.sandboxLacks && { sandboxLacks: result.sandboxLacks }),
  };
}

function totals(trials: TrialSummary[]) {
  return {
    durationMs: trials.reduce((sum, { durationMs }) => sum + durationMs, 0),
    commands: trials.reduce((sum, { commands }) => sum + commands, 0),
    tokens: sumOf(trials.map(({ tokens }) => tokens)),
    costUsd: sumOf(trials.map(({ costUsd }) => costUsd)),
    trials,
  };
}

/** The sum; undefined if a part is undefined. */
function sumOf(parts: readonly (number | undefined)[]): number | undefined {
  return parts.includes(undefined) ? undefined : parts.reduce((sum = 0, part = 0) => sum + part, 0);
}

function tally(trials: readonly FinishedTrial[]) {
  const count = (verdict: string) => trials.filter(({ result }) => result.verdict === verdict).length;
  const passed = count('passed');
  const failed = count('failed');
  const scored = passed + failed;
  return { passed, failed, void: count('void'), passRate: scored === 0 ? undefined : passed / scored };
}

/** The closing table. */
export function summaryTable(summary: BatchSummary): Printable {
  const cells = (row: Pick<RunSummary, 'passed' | 'failed' | 'void' | 'passRate'>) => [
    String(row.passed),
    row.failed > 0 ? styled('red', row.failed) : '0',
    row.void > 0 ? styled('yellow', row.void) : '0',
    percent(row.passRate),
  ];
  const rows = [
    ...summary.runs.map((run) => ({ ...run, name: text`${run.case} · ${run.variant}` })),
    {
      ...summary,
      name: ours('all'),
      harnessVersion: undefined,
      commands: summary.runs.reduce((sum, { commands }) => sum + commands, 0),
    },
  ];
  const priced = rows.some(({ costUsd = 0 }) => costUsd > 0);
  const used = rows.some(({ tokens }) => tokens !== 0);
  const versioned = rows.some(({ harnessVersion }) => harnessVersion !== undefined);
  const columns = [
    { title: 'time', align: 'right' as const, cell: (row: Row) => duration(row.durationMs) },
    { title: 'commands', align: 'right' as const, cell: (row: Row) => String(row.commands) },
    ...(used ? [{ title: 'tokens', align: 'right' as const, cell: (row: Row) => count(row.tokens) }] : []),
    ...(priced ? [{ title: 'cost', align: 'right' as const, cell: (row: Row) => cost(row.costUsd) }] : []),
    ...(versioned ? [{ title: 'harness', cell: (row: Row) => row.harnessVersion ?? '' }] : []),
  ];
  const shown = table(
    [
      { title: 'run' },
      { title: 'passed', align: 'right' },
      { title: 'failed', align: 'right' },
      { title: 'void', align: 'right' },
      { title: 'pass rate', align: 'right' },
      ...columns,
    ],
    rows.map((row) => [row.name, ...cells(row), ...columns.map(({ cell }) => cell(row))]),
  );
  return stack([shown, ...stoppedLines(summary), ...sameSandboxLines(summary)]);
}

/** A line for each variant that was stopped. */
function stoppedLines({ runs }: BatchSummary): Printable[] {
  const stopped = Map.groupBy(
    runs.filter(({ notRun }) => notRun > 0),
    ({ variant }) => variant,
  );
  return [...stopped].map(([variant, ofVariant]) => {
    const trials = ofVariant.reduce((sum, { notRun }) => sum + notRun, 0);
    const notRun = plural(trials, 'trial');
    return text`${variant} was stopped because its harness did not work: ${ours(notRun)} not run`;
  });
}

/** A line for each run that was graded in its harness's sandbox, where a pass is less reliable. */
function sameSandboxLines({ runs }: BatchSummary): Printable[] {
  return runs.flatMap((run) => {
    const same = run.trials.filter(({ verifiedIn, validatedIn }) =>
      [verifiedIn, validatedIn].includes('same'),
    );
    if (same.length === 0) return [];
    const unexpected = same.reduce(
      (sum, { systemChanges }) => sum + (systemChanges?.unexpected.count ?? 0),
      0,
    );
    const changes = plural(unexpected, 'unexpected change');
    return [
      text`${run.case} · ${run.variant} was graded in the harness's own sandbox: ${ours(changes)} there`,
    ];
  });
}

type Row = Pick<RunSummary, 'durationMs' | 'commands' | 'tokens' | 'costUsd' | 'harnessVersion'>;
