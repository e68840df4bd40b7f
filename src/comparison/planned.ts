import type { CaseVerdicts } from '../stats/cases.ts';
import { couldBeWorse } from '../stats/detectable.ts';
import type { SuitePlan } from '../suite/plan.ts';
import { confidenceOf } from './comparison.ts';

/** What a planned variant will be compared with. */
export interface SideBefore {
  /** The variant of the plan. */
  variant: string;
  cases: readonly CaseVerdicts[];
}

/**
 * The variants that a run of the plan could not show to be worse, even if all its trials failed: too few of
 * its cases and trials have a counterpart that passed.
 */
export function blindVariants(
  { cases, trials }: Pick<SuitePlan, 'cases' | 'trials'>,
  before: readonly SideBefore[],
): string[] {
  const planned = new Set(cases.map(({ request }) => request.id));
  const confidence = confidenceOf(before.length);
  const isBlind = (side: SideBefore) => {
    const common = side.cases.filter(({ id }) => planned.has(id));
    const failed = common.map(({ id }) => ({ id, passed: 0, failed: trials, void: 0 }));
    return !couldBeWorse(common, failed, confidence);
  };
  return before.filter(isBlind).map(({ variant }) => variant);
}
