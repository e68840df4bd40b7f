import { serviceRequests } from '../../bounds/callers.ts';
import { canonicalJson } from '../../canonical-json.ts';
import type { Issue } from '../../contract/errors.ts';
import type { ReportedTrial, ReportRequest } from '../../contract/report.ts';
import { refuse, refuseBody } from '../api-error.ts';
import { trialIdentifier } from '../identifiers.ts';
import { storedTrial } from '../record/stored-trial.ts';
import type { Call } from './call.ts';

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
export function reportTrial({ stores, principal, now }: Call, { id, trial, attempt }: ReportRequest) {
  const issues = contradictions(trial);
  if (issues.length > 0) throw refuseBody(issues);
  const { ordinal, caseName } = trial;
  const run = stores.runs.findReported(principal.organizationKey, id, trial.taskIndex);
  if (!run) throw refuse(404, `There is no run or batch ${id}, or the batch has no run ${trial.taskIndex}.`);
  if (caseName !== run.case.name && caseName !== run.case.id) {
    throw refuse(
      409,
      `The run is of the case ${JSON.stringify(run.case.name)}, not of ${JSON.stringify(caseName)}.`,
    );
  }
  if (!run.local) throw refuse(409, 'The run was not started for local execution.');
  if (ordinal >= run.trials) {
    throw refuse(404, `The run has no trial ${ordinal}: it has ${run.trials}, counted from 0.`);
  }
  const stored = storedTrial(trialIdentifier(run.id, ordinal), trial, now);
  const texts = { record: JSON.stringify(stored.record), leftovers: canonicalJson(stored.leftovers) };
  const recorded = stores.trials.read(run.key, ordinal);
  if (recorded) {
    if (recorded.record === texts.record && recorded.leftovers === texts.leftovers) return {};
    throw refuse(409, `Trial ${ordinal} of the run was already reported with different content.`);
  }
  const lease = stores.leases.read(run.key, ordinal);
  if (attempt !== undefined && lease && lease.attempt > attempt) {
    const newer = `lease ${lease.attempt} was granted since, to the agent ${JSON.stringify(lease.agent)}`;
    throw refuse(409, `The report comes from lease ${attempt} of the trial: ${newer}.`);
  }
  stores.leases.remove(run.key, ordinal);
  stores.trials.add({ run: run.key, ordinal, summary: stored.summary, ...texts });
  return {};
}

/** Fields of a report that count or measure something. */
const amounts: ReadonlySet<string> = new Set([
  ...['cacheReadTokens', 'cacheWriteTokens', 'inputTokens', 'outputTokens', 'totalTokens', 'costUsd'],
  ...['commandCount', 'modelMs', 'sandboxMs', 'durationMs', 'index'],
  ...['at', 'startedAt', 'startedAtMillis', 'finishedAtMillis'],
]);

/**
 * What cannot be true of any trial: negative amounts, two validations with one id, a pass beside a failure.
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
      if (typeof inner === 'number' && inner < 0 && amounts.has(name)) say([...path], 'is negative');
      else look(inner);
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
