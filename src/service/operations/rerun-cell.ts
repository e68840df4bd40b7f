import type { z } from 'zod';
import type { RerunRequest, RerunResponse } from '../../contract/catalog.ts';
import { refuse } from '../api-error.ts';
import { requestedVariant } from '../record/variant.ts';
import type { Cell } from '../store/batches.ts';
import type { Call, Change, Steps } from './call.ts';

type Request = z.output<typeof RerunRequest>;

/**
 * Queues a new run of a cell: the same case definition, on the same variant, in the same batch. Without
 * `trials`, it has as many as the batch was started with.
 */
export function* rerunCell(call: Call, request: Request): Steps<Change<z.output<typeof RerunResponse>>> {
  const { local, suite, case: rerun, variant, trials } = cellOf(call, request);
  const variants = [requestedVariant(variant)];
  const onPlatform = {
    suite,
    cases: [rerun],
    variants,
    trials: request.trials ?? trials,
    rerunOf: request.id,
  };
  return { batch: local ? undefined : onPlatform, change: () => addRun(call, request) };
}

function addRun(call: Call, request: Request): z.output<typeof RerunResponse> {
  const { stores, principal, now } = call;
  const { nextTaskIndex, suite, case: rerun, trials, ...cell } = cellOf(call, request);
  const run = stores.batches.addRun({
    ...cell,
    organization: principal.organizationKey,
    taskIndex: nextTaskIndex,
    suiteId: suite.id,
    caseId: rerun.id,
    trials: request.trials ?? trials,
    now,
  });
  return { id: run };
}

function cellOf({ stores, principal }: Call, { id, cellKey }: Request): Cell {
  // A variant's id has no colon; a case's may.
  const colon = cellKey.lastIndexOf(':');
  const names = { batchId: id, caseId: cellKey.slice(0, colon), variantId: cellKey.slice(colon + 1) };
  const cell = colon > 0 ? stores.batches.findCell(principal.organizationKey, names) : undefined;
  if (cell) return cell;
  throw refuse(404, `There is no batch ${id}, or it has no cell ${cellKey} (<caseId>:<variantId>).`);
}
