import type { z } from 'zod';
import type { CasesRequest, CasesResponse } from '../../contract/catalog.ts';
import type { Call } from './call.ts';

export function listCases(
  { stores, principal }: Call,
  { suite }: CasesRequest,
): z.output<typeof CasesResponse> {
  return { cases: stores.cases.list(principal.organizationKey, suite) };
}
