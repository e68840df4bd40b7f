import type { ConfigRevision } from '../agent/config-revision.ts';
import type { Runner } from '../harness/runner.ts';
import { OffsiteError } from '../offsite-error.ts';
import type { SuitePlan } from '../suite/plan.ts';
import { passedEnvironment, refuseKeys } from '../trial/host-environment.ts';
import { checkModels } from '../trial/models.ts';

/**
 * Checks that everything a stored plan refers to still exists: harnesses, models and their keys. The plan
 * itself contains its profiles and sandboxes. Throws `PLAN_NEEDS_MORE`, an input error, with everything that
 * is missing, before any trial starts.
 */
export async function requirePlanned(
  name: string,
  plan: SuitePlan | undefined,
  runners: readonly Runner[],
  { gateway, host }: ConfigRevision,
): Promise<void> {
  if (!plan) return;
  const { variants, judges, replay } = plan;
  const missing = new Set<string>();
  const attempt = async (check: () => void | Promise<void>) => {
    try {
      await check();
    } catch (error) {
      if (!(error instanceof OffsiteError)) throw error;
      missing.add(error.message);
    }
  };
  for (const { harness, model, modelConfig, userModel, sandbox } of variants) {
    if (!runners.some((runner) => runner.name === harness)) missing.add(`there is no harness ${harness}`);
    await attempt(() =>
      checkModels({ variants: [{ model, modelConfig, userModel: undefined }], judges: [], replay }, gateway),
    );
    if (userModel !== undefined)
      await attempt(() => checkModels({ variants: [], judges: [userModel], replay }, gateway));
    await attempt(() => void passedEnvironment(sandbox, host));
  }
  for (const judge of judges)
    await attempt(() => checkModels({ variants: [], judges: [judge], replay }, gateway));
  await attempt(() => refuseKeys(plan, host));
  if (missing.size === 0) return;
  throw new OffsiteError(
    `${name} cannot be resumed with this configuration:\n- ${[...missing].join('\n- ')}`,
    {
      code: 'PLAN_NEEDS_MORE',
      kind: 'input',
      hint:
        "None of its trials started. Name the batch's configuration (--config, OFFSITE_CONFIG) and set its keys, " +
        'or give it up: offsite abandon BATCH',
    },
  );
}
