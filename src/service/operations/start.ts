import type { z } from 'zod';
import type { Case, StartRequest, StartResponse } from '../../contract/definition.ts';
import { refuseBody } from '../api-error.ts';
import { definitionHash } from '../record/definition-hash.ts';
import { oversizedSetups } from '../record/setup.ts';
import { runVariants } from '../record/variant.ts';
import type { Call } from './call.ts';

/**
 * Queues every case on every variant. Runs have the order of the cases, and within a case the order of the
 * variants. {@link startedOnPlatform} has checked the request.
 */
export function startBatch({ stores, principal, now }: Call, request: StartRequest): StartResponse {
  const { suite, cases, trials, local = false, trigger } = request;
  const variants = runVariants(request.variants);
  const organization = principal.organizationKey;
  const batch = stores.batches.addBatch({ organization, suite, trials, local, trigger, now });
  const runs: z.output<typeof StartResponse>['runs'] = [];
  for (const started of cases) {
    const batchCase = stores.batches.addCase({ organization, key: batch.key, suite }, started);
    const hashWith = definitionHash(suite.prompt, started);
    for (const [variantIndex, variant] of variants.entries()) {
      const id = stores.batches.addRun({
        organization,
        batch,
        batchCase,
        taskIndex: runs.length,
        suiteId: suite.id,
        caseId: started.id,
        variant,
        definitionHash: hashWith(request.variants[variantIndex]),
        local,
        trials,
        now,
      });
      runs.push({ id, caseId: started.id, variantIndex });
    }
  }
  return { id: batch.id, runs };
}

/** Checks a request, and returns it if the platform is to run it. */
export function startedOnPlatform(_: Call, request: StartRequest): StartRequest | undefined {
  checkCaseIds(request.cases);
  const oversized = oversizedSetups(request);
  if (oversized.length > 0) throw refuseBody(oversized);
  return request.local ? undefined : request;
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
