import type { RunKey } from '../ledger/batches.ts';
import { OffsiteError } from '../offsite-error.ts';
import type { PlannedCase, PlannedVariant, SuitePlan } from '../suite/plan.ts';

/** One run of a batch, with what was planned for it. */
export interface BatchRun {
  id: string;
  case: PlannedCase;
  variant: PlannedVariant;
  taskIndex: number;
}

/** As the service named it when it started the batch. */
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
  prompt: string;
  runs: OpenRun[];
}

export interface OpenRun extends BatchRun {
  key: RunKey;
  /** The blob with the pulled setup; undefined until it was pulled. */
  setup: string | undefined;
  /** The service's id of its variant, where it is known. */
  variantId?: string | undefined;
}

/** Finds what was planned for a run. Throws `RUN_UNKNOWN` where that is nothing. */
export function batchRun(plan: SuitePlan, started: StartedRun, taskIndex: number): BatchRun {
  const planned = plan.cases.find(({ request }) => request.id === started.caseId);
  const variant = plan.variants[started.variantIndex];
  if (!planned || !variant) {
    throw new OffsiteError(
      `the service started a run of case ${started.caseId} on variant ${started.variantIndex}, which was not asked for`,
      { code: 'RUN_UNKNOWN', kind: 'infrastructure' },
    );
  }
  return { id: started.id, case: planned, variant, taskIndex };
}
