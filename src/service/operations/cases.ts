import type { z } from 'zod';
import type {
  BaselineRequest,
  BaselineResponse,
  CasesRequest,
  CasesResponse,
} from '../../contract/catalog.ts';
import { distributionOf } from '../record/distribution.ts';
import type { Call } from './call.ts';

export function listCases(
  { stores, principal }: Call,
  { suite }: CasesRequest,
): z.output<typeof CasesResponse> {
  return { cases: stores.cases.list(principal.organizationKey, suite) };
}

/**
 * The distribution of a cell's platform runs. Reported trials never enter it, so it is empty if there are
 * only those.
 */
export function readBaseline(
  { stores, principal }: Call,
  { caseId, variant }: z.output<typeof BaselineRequest>,
): z.output<typeof BaselineResponse> {
  const { runs, trials, ended } = stores.cases.baselineTrials(principal.organizationKey, {
    caseId,
    variantId: variant,
  });
  return runs === 0 ? { runs } : { runs, distribution: distributionOf(trials, ended) };
}
