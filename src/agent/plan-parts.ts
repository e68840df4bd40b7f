import { limits } from '../contract/definition.ts';
import type { SuitePlan } from '../suite/plan.ts';

/**
 * A plan as plans that each fit into one start request, in the order of its cases.
 *
 * @param most cases of a part
 */
export function planParts(plan: SuitePlan, most: number = limits.cases): SuitePlan[] {
  const count = Math.max(1, Math.ceil(plan.cases.length / most));
  return Array.from({ length: count }, (_, index) => ({
    ...plan,
    cases: plan.cases.slice(index * most, (index + 1) * most),
  }));
}
