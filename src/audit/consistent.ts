import { messageOf, OffsiteError } from '../base/offsite-error.ts';
import { parseForeignJson } from '../base/parse-json.ts';
import { evidenceBundles } from '../bounds/anyone.ts';
import type { ReportedTrial } from '../contract/report.ts';
import { isCommand } from '../engine/script/step-recorder.ts';
import { isCount } from '../gateway/replay/cassette.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { AuditedLevel } from '../record/audit.ts';
import type { Cause } from '../record/cause.ts';
import { listingOf, type TrialListing } from '../record/listing.ts';
import { readRecord } from '../record/read-record.ts';
import type { TrialRecord } from '../record/trial-record.ts';
import { recordPath, trajectoryPath } from '../trial/collect/artifacts.ts';
import { definitionDigest, fingerprintOf, subjectOf } from '../trial/record.ts';
import { reportOf } from '../trial/report.ts';
import type { TrialSpec } from '../trial/spec.ts';
import { verdictOf } from '../validate/verify.ts';
import { Checks } from './checks.ts';
import { type AuditedTrial, checkKeptFiles } from './evidence-of-trial.ts';
import { checkTraffic } from './traffic.ts';

/** Milliseconds that the ledger's clock may differ from that of a trial, which nobody can set. */
const clockDriftMs = 60_000;

export interface ConsistentParts {
  /** What lists show of the trial; undefined if nothing is stored. */
  listing: TrialListing | undefined;
  taskIndex: number;
  batchStartedAt: number;
  ledger: Pick<Ledger, 'blobs' | 'workspaces' | 'gradings'>;
}

/** Whether all that is said of a trial follows from what its record holds. */
export async function consistentLevel(audited: AuditedTrial, parts: ConsistentParts): Promise<AuditedLevel> {
  const checks = new Checks();
  const { record, trial, spec } = audited;
  checks.same('verdict', 'the verdict that lists show is that of the record', record.verdict, trial.verdict);
  checkGradings(trial, parts.ledger, checks);
  if (record.notRun && record.verdict !== 'void')
    checks.contradicted('verdict', 'what was not run has no verdict', 'void', record.verdict);
  if (record.fromService || record.notRun) {
    checks.missed(record.notRun ? 'it was not run' : 'the record is what the service shows of it');
    return checks.level('consistent', 'evidence');
  }
  checkVerdict(record, checks);
  checkGraded(record, typeof spec === 'string' ? undefined : spec, checks);
  const isOfDefinition = checkDefinition(audited, checks);
  checkReport(audited, parts, checks);
  if (parts.listing)
    checks.same('listing', 'what lists show is in the record', listingOf(record), parts.listing);
  checkTimes(audited, parts, checks);
  const { blobs } = parts.ledger;
  const read = (sha256: string) =>
    (blobs.stat(sha256)?.byteSize ?? 0) > evidenceBundles.bytes.document ? undefined : blobs.tryRead(sha256);
  checkTrajectoryFile(record, read, checks);
  await checkKeptFiles(record, trial.key, parts.ledger, checks);
  checkTraffic(record, typeof spec === 'string' ? undefined : spec, read, checks);
  return checks.level('consistent', isOfDefinition ? undefined : 'evidence');
}

/** The verdict follows from the checks, or a cause explains why there is none. */
function checkVerdict(record: TrialRecord, checks: Checks): void {
  const { verdict, cause, steps, verifySteps = [], validations = [], judgments = [] } = record;
  const byChecks = verdictOf({ verifySteps, validations, judgments });
  const says = 'the verdict follows from the checks';
  if (steps && verdict === 'passed') {
    const other = steps.findIndex((step) => step.verdict !== 'passed');
    if (other !== -1)
      checks.contradicted(`steps[${other}].verdict`, says, 'passed', steps[other]?.verdict ?? 'none');
  }
  if (verdict === 'passed') {
    checks.same('verdict', says, byChecks, verdict);
    if (cause && cause.kind !== 'agent') checks.contradicted('cause', says, 'none', cause.kind);
  } else if (verdict === 'failed') {
    const fromStep = steps?.some((step) => step.verdict === 'failed') === true;
    if (!cause && !fromStep) checks.same('verdict', says, byChecks, verdict);
  } else if (!cause)
    checks.contradicted('cause', 'a trial without a verdict has a cause', 'a cause', undefined);
  else checkCause(record, cause, checks);
}

/** The cause of a missing verdict is one that can be, with the checks and the answers of the record. */
function checkCause(
  { steps, models, verifySteps = [], validations = [], judgments = [] }: TrialRecord,
  { kind, phase }: Cause,
  checks: Checks,
): void {
  if (phase !== 'harness' || kind === 'replay') return;
  // Of several steps, the first ones were graded.
  const graded = verifySteps.length + validations.length + judgments.length;
  if (!steps && graded > 0)
    checks.contradicted('cause.phase', 'what ended with its harness was not graded', 'no checks', graded);
  const asked = (models?.exchanges ?? []).filter((one) => one.role === 'agent' && !isCount(one));
  const answered = asked.filter(
    ({ status = 0, failure, responseBytes }) => status < 300 && failure === undefined && responseBytes > 0,
  );
  const says = 'the cause is one that can be: whatever a harness does after an answer of its model is graded';
  if (['harness', 'unknown'].includes(kind) && answered.length > 0)
    checks.contradicted('cause.kind', says, 'no answer of the model', answered.length);
  if (kind === 'model' && asked.length > 0 && answered.length === asked.length)
    checks.contradicted('cause.kind', 'a model that failed gave no answer, or an error', 'one', 'none');
}

/** Later gradings are of this trial, and their verdicts are those of their records. */
function checkGradings(
  { key, result }: AuditedTrial['trial'],
  { gradings, blobs }: Pick<Ledger, 'gradings' | 'blobs'>,
  checks: Checks,
): void {
  for (const [index, grading] of gradings.of(key).entries()) {
    const path = `gradings[${index}]`;
    const says = 'a later grading is of this trial, and has the verdict of its record';
    try {
      const { verdict, regrade } = readRecord(blobs.readJson(grading.result));
      checks.same(`${path}.verdict`, says, verdict, grading.verdict);
      checks.same(`${path}.of`, says, result, regrade?.of);
    } catch (error) {
      if (!(error instanceof OffsiteError) && !(error instanceof SyntaxError)) throw error;
      checks.missed(`${path}: ${messageOf(error)}`);
    }
  }
}

/** The record is about what the definition asks for. Returns whether that could be compared. */
function checkDefinition({ record, spec, planned, trial }: AuditedTrial, checks: Checks): boolean {
  if (typeof spec === 'string') {
    checks.missed(`that the record is about its definition: ${spec}`);
    return false;
  }
  const says = 'the record is about its definition';
  for (const part of ['prepare', 'verify', 'validator'] as const)
    if (planned)
      checks.same(`setup.${part}`, 'what ran is what the definition says', planned[part], spec[part]);
  if (planned) checks.same('variant', says, spec.variant, trial.variant);
  checks.same('ordinal', says, trial.ordinal, record.subject?.ordinal ?? trial.ordinal);
  if (record.subject) checks.same('subject', says, subjectOf(spec), record.subject);
  else checks.missed('that the record is about its definition: an older Offsite wrote it');
  if (record.fingerprint) checks.same('fingerprint', says, fingerprintOf(spec, record), record.fingerprint);
  else checks.missed('that its checks are those of its definition: the record has no fingerprint');
  if (record.definition !== undefined)
    checks.same('definition', says, definitionDigest(spec, record), record.definition);
  const isOpen = spec.sandbox.network === 'open';
  // What was interrupted may have asked a model that nobody counted.
  if (record.verdict !== 'void')
    checks.same('modelUnmeasured', 'only an open network hides models', isOpen, record.modelUnmeasured);
  return record.subject !== undefined;
}

/** The report is a pure function of the record. */
function checkReport(
  { record, report, spec, trial, attempts }: AuditedTrial,
  parts: ConsistentParts,
  checks: Checks,
) {
  const model = typeof spec === 'string' ? record.subject?.model : spec.model;
  if (!report || model === undefined) {
    checks.missed('that the report follows from the record: there is no report');
    return;
  }
  const attempt = attempts.at(-1)?.number ?? 1;
  const sessionId = `${trial.runId}/${trial.ordinal}/${attempt}`;
  const { caseName, ordinal } = trial;
  const subject = { caseName, ordinal, model, sessionId, taskIndex: parts.taskIndex };
  const expected = withoutRecord(reportOf(record, subject));
  checks.same('report', 'the report follows from the record', expected, withoutRecord(report));
}

/** The artifact by which a report names its record is compared with the record itself. */
function withoutRecord({ outcome, ...report }: ReportedTrial): ReportedTrial {
  const { artifacts: all = [], ...rest } = outcome;
  const artifacts = all.filter(({ path }) => path !== recordPath);
  // A trial that was void before it had any names only its record.
  return { ...report, outcome: { ...rest, ...(artifacts.length > 0 && { artifacts }) } };
}

interface Span {
  startedAt: number;
  finishedAt: number;
}

/** Nothing ends before it begins, and all of it happened within the trial. */
function checkTimes({ record, attempts }: AuditedTrial, { batchStartedAt }: ConsistentParts, checks: Checks) {
  const within = (path: string, says: string, [from, to]: [number, number], outer: Span, drift = 0) => {
    if (to < from) checks.contradicted(path, 'it ends after it begins', from, to);
    if (from < outer.startedAt - drift) checks.contradicted(path, says, outer.startedAt, from);
    if (to > outer.finishedAt + drift) checks.contradicted(path, says, outer.finishedAt, to);
  };
  const inTrial = 'it happened within the trial';
  const { startedAt, finishedAt, phases, steps = [], models, trajectory = [], verifySteps = [] } = record;
  if (finishedAt < startedAt)
    checks.contradicted('finishedAt', 'it ends after it begins', startedAt, finishedAt);
  let until = startedAt;
  for (const [index, { startedAt: from, durationMs }] of phases.entries()) {
    const outer = { startedAt: until, finishedAt };
    const says = 'phases follow one another within the trial';
    within(`phases[${index}]`, says, [from, from + durationMs], outer);
    until = Math.max(until, from + durationMs);
  }
  for (const [index, { startedAt: from, finishedAt: to }] of steps.entries())
    if (from !== undefined && to !== undefined) within(`steps[${index}]`, inTrial, [from, to], record);
  let begun = startedAt;
  for (const [index, exchange] of (models?.exchanges ?? []).entries()) {
    const path = `models.exchanges[${index}]`;
    const { startedAt: from, finishedAt: to, firstByteAt: first = from } = exchange;
    if (to < begun) checks.contradicted(path, 'exchanges are in the order in which they began', begun, to);
    begun = Math.max(begun, from);
    within(path, inTrial, [from, to], record);
    within(`${path}.firstByteAt`, 'an answer begins within its exchange', [first, first], exchange);
  }
  for (const [index, command] of trajectory.entries()) {
    const { startedAtMillis: from = startedAt, finishedAtMillis: to = from } = command;
    within(`trajectory[${index}]`, inTrial, [from, to], record);
  }
  for (const [index, { startedAt: from = startedAt, durationMs = 0 }] of verifySteps.entries())
    within(`verifySteps[${index}]`, inTrial, [from, from + durationMs], record);
  const last = attempts.at(-1);
  if (last?.endedAt !== undefined) {
    const outer = { startedAt: last.startedAt, finishedAt: last.endedAt };
    within('startedAt', 'the trial is within its attempt', [startedAt, finishedAt], outer, clockDriftMs);
  }
  let before = batchStartedAt;
  for (const [index, { number, startedAt: from, endedAt: to = from }] of attempts.entries()) {
    checks.same(`attempts[${index}].number`, 'no attempt is left out', index + 1, number);
    const outer = { startedAt: before, finishedAt: Number.POSITIVE_INFINITY };
    within(`attempts[${number - 1}]`, 'attempts follow one another', [from, to], outer, clockDriftMs);
    before = to;
  }
}

/** The file of the trajectory among the artifacts holds the commands of the record. */
function checkTrajectoryFile(
  { artifacts = [], trajectory = [] }: TrialRecord,
  read: (sha256: string) => Buffer | undefined,
  checks: Checks,
): void {
  const artifact = artifacts.find(({ path }) => path === trajectoryPath);
  const content = artifact && read(artifact.sha256)?.toString('utf8');
  if (content === undefined) return;
  const says = 'the file of the trajectory has the commands of the record';
  try {
    const lines = content
      .split('\n')
      .slice(0, -1)
      .map((line) => parseForeignJson(line));
    checks.same(trajectoryPath, says, trajectory, lines);
  } catch (error) {
    checks.contradicted(trajectoryPath, says, 'a command a line, as JSON', messageOf(error));
  }
}

/** The exit code of a step whose end is not known. Others may stand for what never ran. */
const killed = 137;

/** With one of these, a script can leave its shell before its end. */
const leaving = /\b(exit|exec|eval|source)\b|(^|[\s;&|({])\.\s/m;

/** The checks of a record are all those that its definition asks for, and no others. */
function checkGraded(record: TrialRecord, spec: TrialSpec | undefined, checks: Checks): void {
  if (spec?.verify !== undefined) checkSteps(record, spec.verify, checks);
  const { validations = [], judgments = [] } = record;
  for (const [index, { judgment }] of validations.entries()) {
    if (!judgment) continue;
    // Where a case has several steps, the name of the step stands before that of the judgment.
    const isOf = ({ name }: { name: string }) =>
      name === judgment.name || name.endsWith(`: ${judgment.name}`);
    const listed = judgments.filter(isOf).map((one) => ({ ...one, name: judgment.name }));
    const same = listed.find((one) => JSON.stringify(one) === JSON.stringify(judgment));
    const says = 'the judgment of a validation is among those of the trial';
    if (!same) checks.same(`validations[${index}].judgment`, says, listed[0], judgment);
  }
}

/** The steps are the commands of the script, one after the other, from its first line to its last. */
function checkSteps({ verifySteps = [], verdict }: TrialRecord, script: string, checks: Checks): void {
  if (script.includes('[redacted]')) {
    checks.missed('that each command of verify ran: a key was removed from it');
    return;
  }
  const says = 'each command of verify has its step';
  const lines = script.split('\n');
  let next = 0;
  const skip = () => {
    while (next < lines.length && !isCommand(lines[next] ?? '')) next += 1;
  };
  for (const [index, { command, exitCode }] of verifySteps.entries()) {
    skip();
    const end = next + command.split('\n').length;
    const expected = lines.slice(next, end).join('\n');
    if (expected !== command) {
      checks.contradicted(`verifySteps[${index}].command`, says, expected, command);
      return;
    }
    if (exitCode === killed) return;
    next = end;
  }
  skip();
  // A failed trial may have ended before its last check.
  if (next === lines.length || verdict !== 'passed') return;
  if (leaving.test(script)) checks.missed('that each command of verify ran: its script can end early');
  else checks.contradicted('verifySteps', says, lines[next], 'none');
}
