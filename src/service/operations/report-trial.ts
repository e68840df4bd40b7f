import { canonicalJson } from '../../base/canonical-json.ts';
import { reportedAmounts, serviceRequests } from '../../bounds/callers.ts';
import type { Issue } from '../../contract/errors.ts';
import type { ResponseOf } from '../../contract/operations.ts';
import type { ReportedTrial, ReportRequest } from '../../contract/report.ts';
import { cut } from '../../text/printable.ts';
import { trialIdentifier } from '../identifiers.ts';
import { refuse, refuseBody } from '../json-response.ts';
import { storedTrial } from '../record/stored-trial.ts';
import type { Run } from '../store/runs.ts';
import type { Call, Change, Steps } from './call.ts';

/**
 * Records a trial that ran elsewhere. `id` is the run's id, or the batch's; then `taskIndex` names the run.
 * The same report again changes nothing and succeeds. A different report for the same trial is a conflict,
 * because a record never changes. Reports are compared by what is kept of them, which is all of their content
 * in an order that does not depend on the sender.
 *
 * A report that contradicts itself is refused: its trial would be in rates, costs and times as it is.
 *
 * A report with the number of a lease is refused if the trial has a newer lease. A report without a number is
 * accepted even if another agent has claimed the trial, because the specification knows no leases.
 */
export function* reportTrial(
  call: Call,
  request: ReportRequest,
): Steps<Change<ResponseOf<'evals.reportTrial'>>> {
  const { stores, now } = call;
  const { trial, attempt } = request;
  const issues = contradictions(trial);
  if (issues.length > 0) throw refuseBody(issues);
  yield;
  const run = reportedRun(call, request);
  const { ordinal } = trial;
  const stored = storedTrial(trialIdentifier(run.id, ordinal), trial, now);
  const record = JSON.stringify(stored.record);
  yield;
  const texts = { record, leftovers: canonicalJson(stored.leftovers) };
  const change = () => {
    const recorded = stores.trials.read(run.key, ordinal);
    if (recorded) {
      if (recorded.record === texts.record && recorded.leftovers === texts.leftovers) return {};
      throw refuse(409, `Trial ${ordinal} of the run was already reported with different content.`);
    }
    const lease = stores.trials.lease(run.key, ordinal);
    if (attempt !== undefined && lease && lease.attempt > attempt) {
      const newer = `lease ${lease.attempt} was granted since, to the agent ${JSON.stringify(lease.agent)}`;
      throw refuse(409, `The report comes from lease ${attempt} of the trial: ${newer}.`);
    }
    stores.trials.removeLease(run.key, ordinal);
    stores.trials.add(run.key, ordinal, stored.summary, texts);
    return {};
  };
  return { change };
}

/** The run of a report. Throws an `ApiError` if there is none, or if it has no such trial to report. */
function reportedRun({ stores, principal }: Call, { id, trial }: ReportRequest): Run {
  const { caseName, ordinal, taskIndex } = trial;
  const run = stores.runs.find(principal.organizationKey, id, taskIndex);
  if (!run) throw refuse(404, `There is no run or batch ${id}, or the batch has no run ${taskIndex}.`);
  if (caseName !== run.case.name && caseName !== run.case.id) {
    const [own, given] = [run.case.name, caseName].map((name) =>
      JSON.stringify(cut(name, serviceRequests.bytes.name)),
    );
    throw refuse(409, `The run is of the case ${own}, not of ${given}.`);
  }
  requireLocalTrial(run, ordinal);
  return run;
}

/** Throws an `ApiError` unless the trial is one that somebody else runs and reports. */
export function requireLocalTrial({ local, trials }: Run, ordinal: number): void {
  if (!local) throw refuse(409, 'The run was not started for local execution.');
  if (ordinal >= trials)
    throw refuse(404, `The run has no trial ${ordinal}: it has ${trials}, counted from 0.`);
}

/** Fields of a report that count or measure something, and what none of them can be more than. */
const amounts: ReadonlyMap<string, number> = new Map([
  ...['cacheReadTokens', 'cacheWriteTokens', 'inputTokens', 'outputTokens', 'totalTokens'].map(
    (name) => [name, reportedAmounts.count.tokens] as const,
  ),
  ['costUsd', reportedAmounts.count.costUsd],
  ...['commandCount', 'index'].map((name) => [name, reportedAmounts.count.commands] as const),
  ...['modelMs', 'sandboxMs', 'durationMs'].map((name) => [name, reportedAmounts.count.duration] as const),
  ...['at', 'startedAt', 'startedAtMillis', 'finishedAtMillis'].map(
    (name) => [name, Date.UTC(reportedAmounts.count.year)] as const,
  ),
]);

/**
 * What cannot be true of any trial: amounts that are negative or beyond measure, two validations with one id,
 * a pass beside a failure.
 */
function contradictions({ outcome, usage, events }: ReportedTrial): Issue[] {
  const issues: Issue[] = [];
  const say = (path: Issue['path'], message: string) =>
    issues.push({ _tag: 'Refinement', path: ['trial', ...path], message });
  const path: (string | number)[] = [];
  const look = (value: unknown) => {
    if (typeof value !== 'object' || value === null) return;
    for (const [name, inner] of Object.entries(value)) {
      if (issues.length >= serviceRequests.count.issues) return;
      path.push(Array.isArray(value) ? Number(name) : name);
      const most = typeof inner === 'number' ? amounts.get(name) : undefined;
      if (most === undefined) look(inner);
      else if (Number(inner) < 0) say([...path], 'is negative');
      else if (Number(inner) > most) say([...path], `is more than ${most}`);
      path.pop();
    }
  };
  // The fields of other events are the sender's own.
  const known = events.map((event) => (['Started', 'command'].includes(event._tag) ? event : undefined));
  look({ outcome, usage, events: known });
  const seen = new Set<string>();
  for (const [index, { id }] of (outcome.validations ?? []).entries()) {
    if (seen.has(id)) say(['outcome', 'validations', index, 'id'], 'is the id of another validation too');
    seen.add(id);
    if (issues.length >= serviceRequests.count.issues) break;
  }
  const { passed, verifySteps = [], voidFields = [] } = outcome;
  const failed = verifySteps.findIndex(({ exitCode }) => exitCode !== 0);
  if (passed === true && failed >= 0 && !voidFields.includes('passed'))
    say(['outcome', 'passed'], `is true, but verifySteps[${failed}] failed`);
  return issues;
}
