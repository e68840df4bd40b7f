import { storedPlan } from '../../agent/stored-plan.ts';
import { OffsiteError } from '../../base/offsite-error.ts';
import { type FleetTask, fleetLock, type TrialStanding } from '../../ledger/fleet-tasks.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { FleetDocument } from '../document.ts';
import type { TrialOrder } from '../workflow/messages.ts';

/** The task that Temporal gave this worker for a trial. */
export type GivenTask = Omit<FleetTask, 'isAccepted'>;

/**
 * Puts a trial into the ledger's queue, with its task, unless the ledger has its result. A trial that this
 * worker had left to another one is queued again. Throws `FLEET_TRIAL_UNKNOWN` if the batch has no such
 * trial.
 */
export async function enterTrial(
  { batch: named, run: runId, ordinal }: TrialOrder,
  document: FleetDocument,
  task: GivenTask,
  ledger: Ledger,
): Promise<TrialStanding> {
  const { batch, service, suite, file, runs, trials } = document;
  const run = runs.find(({ id }) => id === runId);
  if (!run || ordinal >= (run.trials ?? trials) || named !== batch)
    throw unknownTrial({ batch: named, run: runId, ordinal });
  const { id, taskIndex, caseId, caseName, variant, variantIndex, details, variantId } = run;
  const plan = await planOf(document, ledger);
  const setup = run.setup === undefined ? undefined : await ledger.blobs.putJson(run.setup);
  return ledger.records.transaction(() => {
    const { runs: keys } = ledger.batches.join({
      ...{ service, id: batch, suite, file, plan, lock: fleetLock },
      runs: [{ id, taskIndex, caseId, caseName, variant, variantIndex, details }],
    });
    const key = keys.get(id);
    if (key === undefined) throw new Error(`run ${id} was added but is not in the ledger`);
    ledger.queue.add([{ run: key, setup, variantId, ordinals: [] }]);
    ledger.foundRuns.claimOpen(key, [ordinal]);
    const standing = ledger.fleetTasks.standing(key, ordinal);
    if (!standing) throw new Error(`trial ${ordinal} of run ${id} was added but is not in the ledger`);
    if (standing.report !== 'delivered') ledger.fleetTasks.put(standing.key, task);
    return standing;
  });
}

export function unknownTrial({
  batch,
  run,
  ordinal,
}: Pick<TrialOrder, 'batch' | 'run' | 'ordinal'>): OffsiteError {
  return new OffsiteError(`the batch ${batch} has no trial ${ordinal} of run ${run}`, {
    code: 'FLEET_TRIAL_UNKNOWN',
    kind: 'infrastructure',
  });
}

/**
 * The blobs with the plans of documents: writing a plan for each of its trials would take longer than the
 * trial.
 */
const plans = new WeakMap<FleetDocument, Promise<string>>();

export function planOf(document: FleetDocument, ledger: Ledger): Promise<string> {
  const known = plans.get(document) ?? ledger.blobs.putJson(storedPlan(document.known));
  plans.set(document, known);
  known.catch(() => plans.delete(document));
  return known;
}
