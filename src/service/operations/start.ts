import type { z } from 'zod';
import type { RerunRequest, RerunResponse } from '../../contract/catalog.ts';
import type { Case, StartRequest, StartResponse } from '../../contract/definition.ts';
import { refuse, refuseBody } from '../api-error.ts';
import { type DefinitionHash, definitionHash } from '../record/definition-hash.ts';
import { oversizedSetups } from '../record/setup.ts';
import { requestedVariant, runVariants } from '../record/variant.ts';
import type { Cell } from '../store/batches.ts';
import type { Call, Change, Steps } from './call.ts';

/** Runs that are written in some milliseconds. */
const runsAtATime = 100;

/**
 * Queues every case on every variant. Runs have the order of the cases, and within a case the order of the
 * variants.
 */
export function* startBatch(call: Call, request: StartRequest): Steps<Change<StartResponse>> {
  checkCaseIds(request.cases);
  const oversized = yield* oversizedSetups(request);
  if (oversized.length > 0) throw refuseBody(oversized);
  const hashes: DefinitionHash[] = [];
  for (const started of request.cases) {
    // Each hash reads the whole prompt.
    yield;
    hashes.push(definitionHash(request.suite.prompt, started));
  }
  return {
    batch: request.local ? undefined : request,
    ...(request.cases.length * request.variants.length > runsAtATime && { isLarge: true }),
    change: () => addBatch(call, request, hashes),
  };
}

function addBatch(
  { stores, principal, now }: Call,
  request: StartRequest,
  hashes: readonly DefinitionHash[],
): StartResponse {
  const { suite, cases, trials, local = false, trigger } = request;
  const variants = runVariants(request.variants);
  const organization = principal.organizationKey;
  const batch = stores.batches.addBatch({ organization, suite, trials, local, trigger, now });
  const runs: z.output<typeof StartResponse>['runs'] = [];
  for (const [index, started] of cases.entries()) {
    const batchCase = stores.batches.addCase({ organization, key: batch.key, suite }, started);
    for (const [variantIndex, variant] of variants.entries()) {
      const id = stores.batches.addRun({
        organization,
        batch,
        batchCase,
        taskIndex: runs.length,
        suiteId: suite.id,
        caseId: started.id,
        variant,
        definitionHash: hashes[index]?.(request.variants[variantIndex]) ?? '',
        local,
        trials,
        now,
      });
      runs.push({ id, caseId: started.id, variantIndex });
    }
  }
  return { id: batch.id, runs };
}

function checkCaseIds(cases: Case[]): void {
  const seen = new Set<string>();
  const issues = cases.flatMap(({ id }, index) => {
    if (!seen.has(id)) {
      seen.add(id);
      return [];
    }
    const message = `another case of this request has the id ${JSON.stringify(id)}`;
    return [{ _tag: 'Refinement' as const, path: ['cases', index, 'id'], message }];
  });
  if (issues.length > 0) throw refuseBody(issues);
}

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
