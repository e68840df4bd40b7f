import type { FoundRunDetails } from '../../agent/specify.ts';
import { knownVariant, ownName } from '../../agent/variants.ts';
import type { Config } from '../../suite/config-file.ts';
import { sandboxIn } from '../../suite/environment.ts';
import { environmentsOf } from '../../suite/environment-content.ts';
import type { PlannedCase, PlannedVariant } from '../../suite/plan.ts';
import type { HarnessOffer } from '../../suite/planned-variant.ts';
import { type Needs, needsOf } from './needs.ts';

/** What the trials of a case on a variant need of a worker. */
export function plannedNeeds(
  planned: PlannedCase,
  variant: PlannedVariant,
  judges: readonly string[],
): Needs {
  const { request, local } = planned;
  const sandbox = sandboxIn(variant.sandbox, local.environment);
  return variantNeeds(
    { ...variant, sandbox },
    [...(request.user && variant.userModel !== undefined ? [variant.userModel] : []), ...judges],
    environmentsOf(planned).flatMap(({ needs = [] }) => needs),
  );
}

function variantNeeds(
  { sandbox, harness, model, modelConfig }: PlannedVariant,
  models: readonly string[],
  labels: readonly string[] = [],
): Needs {
  return needsOf({
    memory: sandbox.memory,
    labels: [...(sandbox.needs ?? []), ...labels],
    // A variant whose harness uses no model still names one.
    models: [...(modelConfig ? [model] : []), ...models],
    ...{ harness, runtime: sandbox.runtime },
  });
}

/**
 * What the trials of a run that somebody else queued need, as far as this machine knows. The worker's
 * configuration says what the names of the run's variant mean.
 */
export function foundNeeds(
  { variant }: FoundRunDetails,
  config: Config,
  harnesses: readonly HarnessOffer[],
): Needs | { reason: string } {
  if (!variant?.harness) return { reason: 'their variant names no harness' };
  const { connections, daemon } = config;
  const harness = ownName(variant.harness, connections.harness);
  const sandbox = variant.sandbox ? ownName(variant.sandbox, connections.sandbox) : 'local';
  const profile = variant.profile || daemon.profiles[harness];
  const names = { sandbox, ...(profile !== undefined && { profile }) };
  const known = knownVariant(variant, config, harnesses);
  if (known.kind === 'known') return needsOf({ ...variantNeeds(known.variant, daemon.judges), ...names });
  const asksModel = harnesses.find(({ name }) => name === harness)?.wires.length !== 0;
  return needsOf({ memory: 0, labels: [], models: asksModel ? [variant.model] : [], harness, ...names });
}
