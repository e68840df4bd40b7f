import type { Trial } from '../../contract/record.ts';
import type { ReportedOutcome, ReportedTrial, TrajectoryEntry, TrialEvent } from '../../contract/report.ts';
import { reportedCosts } from './costs.ts';
import type { EndedTrial } from './distribution.ts';
import { storedValidations } from './stored-validations.ts';

/**
 * A report as it is kept: the trial of the run record, the numbers that sums need, and everything for which a
 * run record has no field.
 */
export interface StoredTrial {
  record: Trial;
  summary: EndedTrial;
  leftovers: { caseName: string; taskIndex: number; passed: boolean | undefined; events: TrialEvent[] };
}

/** `now` in epoch milliseconds. */
export function storedTrial(id: string, report: ReportedTrial, now: number): StoredTrial {
  const { outcome, usage, events, ordinal, sandboxId } = report;
  const { commandCount, exitCode, modelMs, sandboxMs, voidFields, artifacts, verifySteps } = outcome;
  const holds = (field: keyof ReportedOutcome) =>
    outcome[field] !== undefined && !voidFields?.includes(field);
  const trajectory = events.filter((event): event is TrajectoryEntry => event._tag === 'command');
  const summary: EndedTrial = {
    verdict: holds('passed') ? (outcome.passed ? 'passed' : 'failed') : 'void',
    commands: holds('commandCount') ? commandCount : undefined,
    costUsd: usage?.costUsd,
    endedAt: now,
  };
  return {
    summary,
    leftovers: {
      caseName: report.caseName,
      taskIndex: report.taskIndex,
      passed: outcome.passed,
      events: events.filter(({ _tag }) => _tag !== 'command'),
    },
    record: {
      id,
      ordinal,
      status: summary.verdict === 'void' ? 'voided' : 'reported',
      sandboxId,
      commands: commandCount,
      failedCommands: failedCommandsOf(trajectory),
      exitCode,
      modelMs,
      sandboxMs,
      timed: holds('modelMs') && holds('sandboxMs'),
      artifacts,
      costs: reportedCosts([summary]),
      usage,
      trajectory,
      validations: storedValidations(outcome.validations ?? [], outcome.judgments ?? []),
      verifySteps,
      voidFields,
    },
  };
}

/**
 * undefined without a trajectory: then there is no count. A command with an unknown exit code does not count
 * as failed.
 */
function failedCommandsOf(trajectory: TrajectoryEntry[]): number | undefined {
  if (trajectory.length === 0) return undefined;
  return trajectory.filter(({ exitCode }) => exitCode !== undefined && exitCode !== 0).length;
}
