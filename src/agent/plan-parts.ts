import { limits } from '../contract/definition.ts';
import type { SuitePlan } from '../suite/plan.ts';

/** A plan as plans that each fit into one start request, in the order of its cases. */
export function planParts(plan: SuitePlan): SuitePlan[] {
  const count = Math.max(1, Math.ceil(plan.cases.length / limits.cases));
  return Array.from({ length: count }, (_, index) => ({
    ...plan,
    cases: plan.cases.slice(index * limits.cases, (index + 1) * limits.cases),
  }));
}
