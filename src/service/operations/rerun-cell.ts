import type { z } from 'zod';
import type { RerunRequest, RerunResponse } from '../../contract/catalog.ts';
import { refuse } from '../api-error.ts';
import type { Call } from './call.ts';

/**
 * Queues a new run of a cell: the same case definition, on the same variant, in the same batch. Without
 * `trials`, it has as many as the batch was started with.
 */
export function rerunCell(
  { stores, principal, now }: Call,
  { id, cellKey, trials }: z.output<typeof RerunRequest>,
): z.output<typeof RerunResponse> {
  // A variant's id has no colon; a case's may.
  const colon = cellKey.lastIndexOf(':');
  const names = { batchId: id, caseId: cellKey.slice(0, colon), variantId: cellKey.slice(colon + 1) };
  const cell = colon > 0 ? stores.batches.findCell(principal.organizationKey, names) : undefined;
  if (!cell) {
    throw refuse(404, `There is no batch ${id}, or it has no cell ${cellKey} (<caseId>:<variantId>).`);
  }
  if (!cell.local) throw refuse(409, 'The batch was not started for local execution.');
  const run = stores.batches.addRun({
    organization: principal.organizationKey,
    batch: cell.batch,
    batchCase: cell.batchCase,
    taskIndex: cell.nextTaskIndex,
    caseId: names.caseId,
    variant: cell.variant,
    definitionHash: cell.definitionHash,
    local: cell.local,
    trials: trials ?? cell.trials,
    now,
  });
  return { id: run };
}
