import { isDeepStrictEqual } from 'node:util';
import { OffsiteError } from '../../base/offsite-error.ts';
import { limits } from '../../contract/definition.ts';
import type { PlannedVariant, SuitePlan } from '../../suite/plan.ts';

/**
 * A plan with other numbers of trials, or only some of its variants. Throws an `input` error for an unknown
 * name, and for a choice after which the service would take one variant for another.
 */
export function chosenPlan(
  plan: SuitePlan,
  { trials = plan.trials, variant: names }: { trials?: number | undefined; variant?: string[] | undefined },
): SuitePlan {
  if (trials > limits.trials) {
    throw new OffsiteError(`--trials takes at most ${limits.trials}`, {
      code: 'TRIALS_TOO_MANY',
      kind: 'input',
      hint: '`offsite service rerun` adds further trials to a cell of a batch.',
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
  for (const variant of variants) refuseMistaken(variant, plan.variants, variants);
  return { ...plan, trials, variants };
}

/**
 * Throws if the service would take the variant for another one. A request has the model and the connections
 * of a variant, but for example not its profile. So a service tells variants with the same model and
 * connections apart by their order in the request.
 */
function refuseMistaken(
  variant: PlannedVariant,
  all: readonly PlannedVariant[],
  chosen: readonly PlannedVariant[],
): void {
  const before = all
    .slice(0, all.indexOf(variant))
    .find((one) => isAlike(one, variant) && !chosen.includes(one));
  if (!before) return;
  throw new OffsiteError(
    `the service would take the variant ${variant.name} for ${before.name}: a request has the same for both`,
    {
      code: 'VARIANT_MISTAKEN',
      kind: 'input',
      hint: `Start ${before.name} too, or move ${variant.name} to a suite of its own.`,
    },
  );
}

function isAlike(one: PlannedVariant, other: PlannedVariant): boolean {
  return one.model === other.model && isDeepStrictEqual(one.credentials, other.credentials);
}
