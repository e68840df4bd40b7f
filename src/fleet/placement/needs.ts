import { z } from 'zod';
import { type FoundRunDetails, knownVariant, ownName } from '../../agent/specify.ts';
import { fleetMessages } from '../../bounds/fleet.ts';
import type { Config } from '../../suite/config-file.ts';
import { sandboxIn } from '../../suite/environment.ts';
import { environmentsOf, type PlannedCase, type PlannedVariant } from '../../suite/plan.ts';
import type { HarnessOffer } from '../../suite/planned-variant.ts';
import { fleetFormat } from '../format.ts';
import { hashOf } from '../storage/storage.ts';
import type { WorkerProfile } from './worker-profile.ts';

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
  if (typeof known !== 'string') return needsOf({ ...variantNeeds(known, daemon.judges), ...names });
  const asksModel = harnesses.find(({ name }) => name === harness)?.wires.length !== 0;
  return needsOf({ memory: 0, labels: [], models: asksModel ? [variant.model] : [], harness, ...names });
}

/** One thing that a trial needs. */
interface Need {
  /** `has the label gpu` */
  requirement: string;
  isMet(profile: WorkerProfile): boolean;
}

/** Whether a worker can run trials with these needs. */
export function canRun(profile: WorkerProfile, needs: Needs): boolean {
  return partsOf(needs).every(({ isMet }) => isMet(profile));
}

/**
 * Why no worker of a pool can run trials with these needs: `no worker has the label gpu`. Undefined if one
 * can.
 *
 * @param workers those that are there now, of all pools
 */
export function unmet(needs: Needs, pool: string, workers: readonly WorkerProfile[]): string | undefined {
  const there = workers.filter(({ ended }) => !ended);
  if (there.length === 0) return 'no worker is running';
  const own = there.filter(({ pools }) => pools.includes(pool));
  if (own.length === 0) return `no worker joins the pool ${pool}`;
  if (own.some((profile) => canRun(profile, needs))) return undefined;
  const parts = partsOf(needs);
  const none = parts.find(({ isMet }) => !own.some(isMet));
  if (none) return `no worker ${none.requirement}${most(none, needs, own)}`;
  const rare = parts.filter(({ isMet }) => !own.every(isMet)).map(({ requirement }) => requirement);
  return `no worker has all of this: ${rare.map((requirement) => `it ${requirement}`).join(', ')}`;
}

/** A hint if no worker has enough memory; else empty. */
function most(need: Need, { memory }: Needs, workers: readonly WorkerProfile[]): string {
  const largest = Math.max(...workers.map(({ trialMemory }) => trialMemory));
  if (need.requirement !== hasMemory(memory)) return '';
  return ` (the most is ${memoryText(largest)}: fewer trials at a time leave more for each)`;
}

function partsOf({ memory, labels, models, harness, runtime, sandbox, profile }: Needs): Need[] {
  return [
    ...labels.map((label) => ({
      requirement: `has the label ${label}`,
      isMet: (worker: WorkerProfile) => worker.labels.includes(label),
    })),
    ...models.map((model) => ({
      requirement: `has the model ${model} in its offsite.yaml`,
      isMet: (worker: WorkerProfile) => worker.models.includes(model),
    })),
    { requirement: hasMemory(memory), isMet: (worker) => fits(memory, worker) },
    { requirement: `has the harness ${harness}`, isMet: (worker) => worker.harnesses.includes(harness) },
    ...(runtime === undefined
      ? []
      : [
          {
            requirement: `has the runtime ${runtime}`,
            isMet: (one: WorkerProfile) => one.runtimes.includes(runtime),
          },
        ]),
    ...(sandbox === undefined
      ? []
      : [
          {
            requirement: `has the sandbox ${sandbox}`,
            isMet: (one: WorkerProfile) => one.sandboxes.includes(sandbox),
          },
        ]),
    ...(profile === undefined
      ? []
      : [
          {
            requirement: `has the profile ${profile}`,
            isMet: (one: WorkerProfile) => one.profiles.includes(profile),
          },
        ]),
  ];
}

function fits(memory: number, { trialMemory }: WorkerProfile): boolean {
  return memory <= Math.max(smallest, trialMemory);
}

function hasMemory(memory: number): string {
  return `has ${memoryText(memory)} of memory for a trial`;
}

/** `512 MiB`, `2.5 GiB` */
export function memoryText(bytes: number): string {
  const GiB = 1024 ** 3;
  return bytes < GiB ? `${Math.round(bytes / 1024 ** 2)} MiB` : `${Number((bytes / GiB).toFixed(1))} GiB`;
}
