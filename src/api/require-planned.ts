import { basename } from 'node:path';
import type { ConfigRevision } from '../agent/config-revision.ts';
import { OffsiteError } from '../base/offsite-error.ts';
import type { Runner } from '../harness/runner.ts';
import { type ModelConfig, whereOf } from '../suite/model-config.ts';
import type { SuitePlan } from '../suite/plan.ts';
import { findModel } from '../suite/planned-variant.ts';
import { type Printable, text } from '../text/printable.ts';
import { passedEnvironment, refuseKeys } from '../trial/host-environment.ts';
import { checkModels } from '../trial/models.ts';

/**
 * Checks that everything a stored plan refers to still exists: harnesses, models and their keys. The plan
 * itself contains its profiles and sandboxes. Throws `PLAN_NEEDS_MORE`, an input error, with everything that
 * is missing, before any trial starts; also if recorded answers and live ones would mix in a batch.
 *
 * @param note called for each model that answers from another place than when the batch began
 */
export async function requirePlanned(
  name: string,
  plan: SuitePlan | undefined,
  runners: readonly Runner[],
  { gateway, host, config }: ConfigRevision,
  note: (line: Printable) => void,
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
  const moved = new Map<string, string>();
  for (const { harness, model, modelConfig, userModel, sandbox } of variants) {
    const now = findModel(model, config);
    if (modelConfig && now && replay === undefined) {
      if ('replay' in modelConfig !== 'replay' in now) missing.add(mixedText(model, modelConfig, now));
      else if (placeOf(modelConfig) !== placeOf(now)) moved.set(model, movedText(model, modelConfig, now));
    }
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
  if (missing.size === 0) {
    for (const line of moved.values()) note(text`${name}: ${line}`);
    return;
  }
  throw new OffsiteError(
    `${name} cannot be resumed with this configuration:\n- ${[...missing].join('\n- ')}`,
    {
      code: 'PLAN_NEEDS_MORE',
      kind: 'input',
      hint:
        "None of its trials started. Name the batch's configuration (--config, OFFSITE_CONFIG) and set its keys, " +
        'or give it up: offsite data abandon BATCH',
    },
  );
}

/** Where a model answers from, the same in each clone of a repository. */
function placeOf(model: ModelConfig): string {
  return 'baseUrl' in model ? model.baseUrl : basename(whereOf(model));
}

function mixedText(name: string, before: ModelConfig, now: ModelConfig): string {
  return `${movedText(name, before, now)}: recorded and live answers do not mix in a batch`;
}

function movedText(name: string, before: ModelConfig, now: ModelConfig): string {
  return `the model ${name} answered from ${placeOf(before)} when the batch began, and answers from ${placeOf(now)} now`;
}
