import type { z } from 'zod';
import { serviceRequests } from '../../bounds/callers.ts';
import type { Case, StartRequest, StartResponse } from '../../contract/definition.ts';
import { OffsiteError } from '../../offsite-error.ts';
import { refuseBody } from '../api-error.ts';
import { definitionHash } from '../record/definition-hash.ts';
import { setupOf, setupSizeBound } from '../record/setup.ts';
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
    const setup = JSON.stringify(readableSetup(suite, started, cases.indexOf(started)));
    const batchCase = stores.batches.addCase({ organization, key: batch.key, suite }, started, setup);
    for (const [variantIndex, variant] of variants.entries()) {
      const requested = request.variants[variantIndex] ?? { model: variant.model };
      const id = stores.batches.addRun({
        organization,
        batch: batch.key,
        batchCase,
        taskIndex: runs.length,
        suiteId: suite.id,
        caseId: started.id,
        variant,
        definitionHash: definitionHash({ prompt: suite.prompt, case: started, variant: requested }),
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
  checkSetupSize(request);
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

/** The setup of a case's runs. Refuses a text that is too long after its variables are expanded. */
function readableSetup(suite: StartRequest['suite'], started: Case, index: number) {
  try {
    return setupOf(suite, started);
  } catch (error) {
    if (!(error instanceof OffsiteError)) throw error;
    throw refuseBody([{ _tag: 'Refinement', path: ['cases', index], message: error.message }]);
  }
}

function checkSetupSize({ suite, cases }: StartRequest): void {
  const size = cases.reduce((sum, one) => sum + setupSizeBound(suite, one), 0);
  if (size <= serviceRequests.bytes.setups) return;
  const message = `may expand to more than ${serviceRequests.bytes.setups} characters with their variables`;
  throw refuseBody([{ _tag: 'Refinement', path: ['cases'], message }]);
}
