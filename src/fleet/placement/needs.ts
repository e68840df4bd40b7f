import { z } from 'zod';
import type { FoundRunDetails } from '../../agent/specify.ts';
import { knownVariant, ownName } from '../../agent/variants.ts';
import { fleetMessages } from '../../bounds/fleet.ts';
import type { Config } from '../../suite/config-file.ts';
import { sandboxIn } from '../../suite/environment.ts';
import { environmentsOf } from '../../suite/environment-content.ts';
import type { PlannedCase, PlannedVariant } from '../../suite/plan.ts';
import type { HarnessOffer } from '../../suite/planned-variant.ts';
import { fleetFormat } from '../format.ts';
import { hashOf } from '../storage/storage.ts';

const Name = z.string().max(fleetMessages.bytes.text);
const Names = z.array(Name).max(fleetMessages.count.names);

/** What a worker must have to run a trial. */
export const Needs = z.object({
  /** Bytes for the trial, rounded up so that there are few different ones. */
  memory: z.number().nonnegative(),
  labels: Names,
  /** Names of models, as configurations name them. */
  models: Names,
  harness: Name,
  /** An OCI runtime of the engine. */
  runtime: Name.optional(),
  /** For a run that was found: names of the worker's configuration. */
  sandbox: Name.optional(),
  profile: Name.optional(),
});
export type Needs = z.infer<typeof Needs>;

/** The needs of one or several trials, in one form: equal needs are equal as JSON. */
export function needsOf(asked: Needs): Needs {
  const { memory, labels, models, harness, runtime, sandbox, profile } = asked;
  return {
    memory: roundedUp(memory),
    labels: [...new Set(labels)].toSorted(),
    models: [...new Set(models)].toSorted(),
    harness,
    ...(runtime !== undefined && { runtime }),
    ...(sandbox !== undefined && { sandbox }),
    ...(profile !== undefined && { profile }),
  };
}

/** Trials that need no more memory than this run on any machine. */
export const smallest = 512 * 1024 ** 2;

/** Four steps between one power of two and the next: 2, 2.5, 3, 3.5 and 4 GiB. */
function roundedUp(bytes: number): number {
  if (bytes <= smallest) return smallest;
  const step = 2 ** Math.floor(Math.log2(bytes)) / 4;
  return Math.ceil(bytes / step) * step;
}

/** The task queue of trials with these needs: polled by the workers of the pool that have all of them. */
export function queueFor(taskQueue: string, pool: string, needs: Needs): string {
  return `${taskQueue}/${fleetFormat}/${pool}/${hashOf(JSON.stringify(needsOf(needs))).slice(0, 16)}`;
}

/** The needs, without duplicates. */
export function distinctNeeds(all: readonly Needs[]): Needs[] {
  const byText = new Map(all.map((needs) => [JSON.stringify(needsOf(needs)), needsOf(needs)]));
  return [...byText.values()];
}

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
    harness,
    runtime: sandbox.runtime,
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
