import { canonicalJson, sha256 } from '../../base/canonical-json.ts';
import type { Trial } from '../../contract/record.ts';
import type { ReportedOutcome, ReportedTrial, TrajectoryEntry, TrialEvent } from '../../contract/report.ts';
import type {
  CapturedText,
  Judgment,
  ReportedText,
  ReportedValidation,
  Validation,
} from '../../contract/validation.ts';
import { trialIdentifier } from '../identifiers.ts';
import { type EndedTrial, reportedCosts } from './costs.ts';

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
      validations: withJudgments((outcome.validations ?? []).map(storedValidation), outcome.judgments ?? []),
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

/**
 * Gives each judgment to the validation with its name (if several have that name, the first judgment to the
 * first validation). Any other judgment becomes its own validation, of kind `judgment`.
 */
export function withJudgments(validations: Validation[], judgments: Judgment[]): Validation[] {
  const waiting = Map.groupBy(judgments, ({ name }) => name);
  const judged = validations.map((validation) => ({
    ...validation,
    judgment: waiting.get(validation.name)?.shift() ?? validation.judgment,
  }));
  const alone = [...waiting.values()].flat();
  return [
    ...judged,
    ...alone.map((judgment, position) => judgmentAlone(judgment, validations.length + position)),
  ];
}

function storedValidation({ calls, logs, input, output, error, ...same }: ReportedValidation): Validation {
  return {
    ...same,
    kind: 'code',
    status: same.exitCode === undefined ? 'voided' : same.exitCode === 0 ? 'passed' : 'failed',
    input: captured(input),
    output: captured(output),
    error: captured(error),
    calls: calls?.map((call) => ({
      ...call,
      method: 'answer',
      input: captured(call.input),
      output: captured(call.output),
      error: captured(call.error),
    })),
    logs: logs?.map((log) => ({ ...log, level: 'stdout', value: captured(log.value) })),
  };
}

function captured(reported: ReportedText | undefined): CapturedText | undefined {
  return reported && { ...reported, format: 'text', state: 'captured' };
}

function judgmentAlone(judgment: Judgment, index: number): Validation {
  return {
    id: `judgment-${index}`,
    index,
    name: judgment.name,
    kind: 'judgment',
    status: judgmentStatus(judgment),
    durationMs: judgment.durationMs,
    judgment,
  };
}

/** undefined if the judgment has no threshold, so that nothing depends on it. */
function judgmentStatus({ score, threshold, error }: Judgment): Validation['status'] {
  if (error !== undefined) return 'voided';
  if (threshold === undefined) return undefined;
  if (score === undefined) return 'voided';
  return score >= threshold ? 'passed' : 'failed';
}

/** Digests by which evidence of a trial is compared with what a service has of it, in hexadecimal. */

/** Of a report, by the JSON texts that are kept of it, which have all of its content. */
export function digestOfKept({ record, leftovers }: { record: string; leftovers: string }): string {
  return sha256(`${record}\n${leftovers}`).toString('hex');
}

/** The same of a report that is elsewhere. */
export function digestOfReport(runId: string, report: ReportedTrial): string {
  const { record, leftovers } = storedTrial(trialIdentifier(runId, report.ordinal), report, 0);
  return digestOfKept({ record: JSON.stringify(record), leftovers: canonicalJson(leftovers) });
}

/** Of the setup of a run, whatever the order of its members. */
export function digestOfSetup(setup: unknown): string {
  return sha256(canonicalJson(setup)).toString('hex');
}
