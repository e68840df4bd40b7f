import { canonicalJson } from '../../canonical-json.ts';
import type { ReportRequest } from '../../contract/report.ts';
import { refuse } from '../api-error.ts';
import { trialIdentifier } from '../identifiers.ts';
import { storedTrial } from '../record/stored-trial.ts';
import type { Call } from './call.ts';

/**
 * Records a trial that ran elsewhere. `id` is the run's id, or the batch's; then `taskIndex` names the run.
 * The same report again changes nothing and succeeds. A different report for the same trial is a conflict,
 * because a record never changes. Reports are compared by what is kept of them, which is all of their content
 * in an order that does not depend on the sender.
 *
 * A report with the number of a lease is refused if the trial has a newer lease. A report without a number is
 * accepted even if another agent has claimed the trial, because the specification knows no leases.
 */
export function reportTrial({ stores, principal, now }: Call, { id, trial, attempt }: ReportRequest) {
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
