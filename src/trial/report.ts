import { unionOf } from '../base/intervals.ts';
import { reportedOutput } from '../bounds/sandbox.ts';
import type { ReportedOutcome, ReportedTrial, TrajectoryEntry } from '../contract/report.ts';
import type { Blob } from '../ledger/blobs.ts';
import type { FinishedTrial } from '../ledger/trials.ts';
import type { BegunAttempt } from '../record/attempt.ts';
import type { CommandEntry } from '../record/harness.ts';
import { listingOf } from '../record/listing.ts';
import { commandsOf } from '../record/timeline.ts';
import type { TrialRecord } from '../record/trial-record.ts';
import { usageFields, usageOf } from '../record/usage.ts';
import { captured, reportedForm } from '../validate/record.ts';
import { recordPath } from './collect/artifacts.ts';
import type { TrialSpec } from './spec.ts';

export interface ReportSubject extends Omit<ReportedSpec, 'runId'> {
  /** Identifies the trial in its `Started` event. */
  sessionId: string;
  /** The blob with the stored record, which the report names. Undefined for a platform's own trials. */
  record?: Blob | undefined;
}

/**
 * The report that the service gets for a trial: the measured fields, and in `voidFields` the names of the
 * fields that are missing. The outputs of steps and the changed files stay in the ledger, because the wire
 * has no field for them.
 */
export function reportOf(result: TrialRecord, subject: ReportSubject): ReportedTrial {
  const trajectory = commandsOf(result) ?? [];
  const report: ReportedTrial = {
    caseName: subject.caseName,
    ordinal: subject.ordinal,
    taskIndex: subject.taskIndex,
    events: [
      {
        _tag: 'Started',
        model: markedModel(subject.model, result),
        sessionId: subject.sessionId,
        at: result.startedAt,
      },
      ...(result.replay ? [{ _tag: 'Replayed', ...result.replay }] : []),
      ...(trajectory.some(({ timesBy }) => timesBy) ? [timesByArrival] : []),
      ...reportable(trajectory),
    ],
    outcome: outcomeOf(result, subject.record),
  };
  if (result.sandboxId !== undefined) report.sandboxId = result.sandboxId;
  const usage = usageOf(result);
  if (usage) report.usage = usage;
  return report;
}

type ReportedSpec = Pick<TrialSpec, 'runId' | 'caseName' | 'taskIndex' | 'ordinal' | 'model'>;

/** What the ledger keeps of a trial that has ended. */
export function finishedTrial(
  result: TrialRecord,
  { runId, caseName, taskIndex, ordinal, model }: ReportedSpec,
  attempt: BegunAttempt,
  lease: number | undefined,
): FinishedTrial {
  const { verdict, cause, fingerprint, left } = result;
  const sessionId = `${runId}/${ordinal}/${attempt.number}`;
  const subject = { caseName, taskIndex, ordinal, model, sessionId };
  const report = (record: Blob) => reportOf(result, { ...subject, record });
  return { verdict, cause, result, fingerprint, listing: listingOf(result), report, left, lease };
}

/**
 * Marks a report whose harness does not say when its commands began and ended. `sandboxMs` and the times of
 * commands are then those at which the lines of the harness, or its requests to its model, arrived.
 */
const timesByArrival = { _tag: 'TimesByArrival', fields: ['sandboxMs'] };

/** The name of the model, marked so that nobody takes recorded answers for new ones. */
function markedModel(model: string, { replay }: TrialRecord): string {
  if (!replay) return model;
  if (replay.answered === 0) return model;
  return `${model} (${replay.live === undefined ? 'replayed' : 'partly replayed'})`;
}

/**
 * The trajectory as it is reported: if all outputs together are too large, each is cut to an equal share. The
 * ledger keeps them whole.
 */
function reportable(commands: readonly CommandEntry[]): readonly TrajectoryEntry[] {
  const trajectory = commands.map(({ timesBy: _, ...entry }) => entry);
  const all = trajectory.reduce((sum, { output = '' }) => sum + output.length, 0);
  if (all <= reportedOutput.bytes.all) return trajectory;
  const share = Math.floor(reportedOutput.bytes.all / trajectory.length);
  return trajectory.map((entry) => {
    const { text, truncated = false } = captured(entry.output ?? '', share);
    return truncated ? { ...entry, output: text, outputTruncated: true } : entry;
  });
}

function outcomeOf(result: TrialRecord, record: Blob | undefined): ReportedOutcome {
  const trajectory = commandsOf(result);
  const usage = usageOf(result) ?? {};
  const unmeasured = usageFields.filter((field) => usage[field] === undefined);
  const measured = {
    passed: result.verdict === 'void' ? undefined : result.verdict === 'passed',
    // If some commands were not kept, neither their number nor their time was measured.
    commandCount: result.commandsCut ? undefined : trajectory?.length,
    exitCode: result.harness?.ended === 'exited' ? result.harness.exitCode : undefined,
    modelMs: result.modelUnmeasured ? undefined : (result.models?.modelMs ?? 0),
    sandboxMs: trajectory && !result.commandsCut ? busyMs(trajectory) : undefined,
    verifySteps: result.verifySteps?.map(({ command, exitCode }) => ({ command, exitCode })),
    validations: result.validations?.map(reportedForm),
    artifacts: result.artifacts,
    judgments: result.judgments,
  };
  const fields = Object.entries(measured);
  return {
    ...Object.fromEntries(fields.filter(([, value]) => value !== undefined)),
    // Also of a trial whose artifacts were not collected: what was reported commits to the record.
    ...(record && { artifacts: [...(result.artifacts ?? []), { path: recordPath, ...record }] }),
    voidFields: [
      ...fields.filter(([, value]) => value === undefined).map(([name]) => name),
      ...(result.sandboxId === undefined ? ['sandboxId'] : []),
      // A TAP report seldom says how long a test took. The field is named once, because a report may have
      // thousands of tests.
      ...(result.validations?.some(({ durationMs }) => durationMs === undefined)
        ? ['validations.durationMs']
        : []),
      ...(unmeasured.length === usageFields.length ? ['usage'] : unmeasured.map((field) => `usage.${field}`)),
    ],
  };
}

/** Milliseconds in which at least one command ran. Undefined if it is not known when each began and ended. */
export function busyMs(trajectory: readonly TrajectoryEntry[]): number | undefined {
  const spans = trajectory.flatMap(({ startedAtMillis: startedAt, finishedAtMillis: finishedAt }) =>
    startedAt === undefined || finishedAt === undefined ? [] : [{ startedAt, finishedAt }],
  );
  return spans.length === trajectory.length ? unionOf(spans) : undefined;
}
