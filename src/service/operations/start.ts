import type { z } from 'zod';
import type { Case, StartRequest, StartResponse } from '../../contract/definition.ts';
import { refuseBody } from '../api-error.ts';
import { type DefinitionHash, definitionHash } from '../record/definition-hash.ts';
import { oversizedSetups } from '../record/setup.ts';
import { runVariants } from '../record/variant.ts';
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
