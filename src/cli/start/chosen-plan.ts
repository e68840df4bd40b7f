import { limits } from '../../contract/definition.ts';
import { OffsiteError } from '../../offsite-error.ts';
import type { SuitePlan } from '../../suite/plan.ts';

/** A plan with other numbers of trials, or only some of its variants. Throws an `input` error for an unknown name. */
export function chosenPlan(
  plan: SuitePlan,
  { trials = plan.trials, variant: names }: { trials?: number | undefined; variant?: string[] | undefined },
): SuitePlan {
  if (trials > limits.trials) {
    throw new OffsiteError(`--trials takes at most ${limits.trials}`, {
      code: 'TRIALS_TOO_MANY',
      kind: 'input',
      hint: '`offsite rerun` adds further trials to a cell of a batch.',
    });
  }
  const known = plan.variants.map(({ name }) => name);
  const unknown = names?.find((name) => !known.includes(name));
  if (unknown !== undefined) {
    throw new OffsiteError(`the suite has no variant ${unknown}`, {
      code: 'VARIANT_UNKNOWN',
      kind: 'input',
      hint: `It has ${known.join(', ')}.`,
    });
  }
  const variants = plan.variants.filter(({ name }) => names === undefined || names.includes(name));
  return { ...plan, trials, variants };
}
