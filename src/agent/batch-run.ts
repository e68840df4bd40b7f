import { OffsiteError } from '../base/offsite-error.ts';
import type { RunKey, StoredBatch } from '../ledger/batches.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { PlannedCase, PlannedVariant, SuitePlan } from '../suite/plan.ts';
import { readPlan } from './stored-plan.ts';

/** One run of a batch, with what was planned for it. */
export interface BatchRun {
  id: string;
  case: PlannedCase;
  variant: PlannedVariant;
  taskIndex: number;
  key: RunKey;
  /** The blob with the pulled setup; undefined until the setup is pulled. */
  setup: string | undefined;
  /** The service's id of the run's variant, if it is known. */
  variantId?: string | undefined;
}

/** A run as the service named it when it started the batch. */
export interface StartedRun {
  id: string;
  caseId: string;
  variantIndex: number;
}

/** A batch that the service has started and the ledger knows. */
export interface OpenBatch {
  key: number;
  id: string;
  plan: SuitePlan;
  runs: BatchRun[];
}

/** Finds what was planned for a run. Throws `RUN_UNKNOWN` if nothing was. */
export function plannedRun(
  plan: SuitePlan,
  started: StartedRun,
  taskIndex: number,
): Pick<BatchRun, 'id' | 'case' | 'variant' | 'taskIndex'> {
  const planned = plan.cases.find(({ request }) => request.id === started.caseId);
  const variant = plan.variants[started.variantIndex];
  if (!planned || !variant) {
    const what = `a run of case ${started.caseId} on variant ${started.variantIndex}`;
    throw new OffsiteError(`the service started ${what}, which Offsite did not ask for`, {
      code: 'RUN_UNKNOWN',
      kind: 'infrastructure',
    });
  }
  return { id: started.id, case: planned, variant, taskIndex };
}

/**
 * A batch as the ledger has it. Hold the batch's lock when you call this, because another process may have
 * changed it. Throws `NOT_RESUMABLE` for a batch without a plan, `PLAN_UNREADABLE` and `BLOB_DAMAGED`.
 */
export function openBatch(stored: StoredBatch, ledger: Ledger): OpenBatch {
  if (stored.plan === undefined) throw notResumable(`batch ${stored.id}`);
  return openPlanned(stored, readPlan(ledger.blobs.readJson(stored.plan)), ledger);
}

/** The same for a batch whose plan is known. */
export function openPlanned(
  { key, id }: Pick<StoredBatch, 'key' | 'id'>,
  plan: SuitePlan,
  ledger: Ledger,
): OpenBatch {
  const runs = ledger.batches.runs(key).map(({ key, taskIndex, setup, variantId, ...run }) => {
    return { ...plannedRun(plan, run, taskIndex), key, setup, variantId };
  });
  return { key, id, plan, runs };
}

export function notResumable(name: string): OffsiteError {
  return new OffsiteError(`${name} was started by a version of Offsite that did not store its plan`, {
    code: 'NOT_RESUMABLE',
    kind: 'input',
    hint: 'Run the suite again. The finished trials are still reported.',
  });
}
