import { serviceRequests } from '../bounds/callers.ts';
import { limits } from '../contract/definition.ts';
import type { SuitePlan } from '../suite/plan.ts';

/**
 * A plan as plans that each fit into one start request, in the order of its cases. A case that alone is
 * larger is a part of its own, which the service then refuses.
 *
 * @param most cases of a part
 */
export function planParts(plan: SuitePlan, most: number = limits.cases): SuitePlan[] {
  const parts: SuitePlan['cases'][] = [[]];
  let bytes = 0;
  for (const one of plan.cases) {
    const size = Buffer.byteLength(JSON.stringify(one.request));
    let part = parts.at(-1) ?? [];
    if (part.length === most || (part.length > 0 && bytes + size > largestPart)) {
      part = [];
      parts.push(part);
      bytes = 0;
    }
    part.push(one);
    bytes += size;
  }
  return parts.map((cases) => ({ ...plan, cases }));
}

/** The prompt, the variants and the defaults of cases take up the rest. */
const largestPart = serviceRequests.bytes.body / 2;
