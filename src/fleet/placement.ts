import { z } from 'zod';
import { type FoundRunDetails, knownVariant, ownName } from '../agent/specify.ts';
import { fleetMessages } from '../bounds/fleet.ts';
import type { Engine } from '../engine/engine.ts';
import type { Config } from '../suite/config-file.ts';
import { sandboxIn } from '../suite/environment.ts';
import { environmentsOf, type PlannedCase, type PlannedVariant } from '../suite/plan.ts';
import { type HarnessOffer, needsModel } from '../suite/planned-variant.ts';
import { architecture } from '../suite/quantities.ts';
import { fleetFormat } from './format.ts';
import { hashOf } from './storage/storage.ts';

/** Decides which worker can run which trial. Trials ask for the names that workers offer, and for memory. */

const Name = z.string().max(fleetMessages.bytes.text);
const Names = z.array(Name).max(fleetMessages.count.names);

const named = {
  labels: Names,
  /** As configurations name them. */
  models: Names,
  harnesses: Names,
  /** OCI runtimes of the engine. */
  runtimes: Names,
  /** Of the worker's configuration: what trials of runs that were found ask for. */
  sandboxes: Names,
  profiles: Names,
};

/** What a worker must have to run a trial. */
export const Needs = z.object({
  /** Bytes for the trial, rounded up so that there are few different ones. */
  memory: z.number().nonnegative(),
  ...named,
});
export type Needs = z.infer<typeof Needs>;

/** What a worker offers. It writes this into the storage, where commands and other workers read it. */
export const WorkerProfile = z.object({
  /** The version of Offsite. */
  version: Name,
  /** The format of what it exchanges with the fleet. */
  format: Name,
  service: Name,
  pools: Names,
  engine: z.object({ version: Name, arch: Name, cpus: z.number(), memory: z.number() }),
  /** Trials at a time, and bytes of memory for each. */
  concurrency: z.number(),
  trialMemory: z.number(),
  ...named,
  /** Set when the worker takes no more trials, because it ends. */
  ended: z.boolean().optional(),
});
export type WorkerProfile = z.infer<typeof WorkerProfile>;

/** How a message says that a worker has something. */
const having: Record<keyof typeof named, (name: string) => string> = {
  labels: (name) => `has the label ${name}`,
  models: (name) => `has the model ${name} in its offsite.yaml`,
  harnesses: (name) => `has the harness ${name}`,
  runtimes: (name) => `has the runtime ${name}`,
  sandboxes: (name) => `has the sandbox ${name}`,
  profiles: (name) => `has the profile ${name}`,
};
const kinds = Object.keys(having) as (keyof typeof named)[];

/** The part of an engine's memory that trials may use. Everything else on its machine has the rest. */
const shareOfMemory = 0.75;

export function profileOf({
  config,
  engine,
  harnesses,
  memory: given,
  ...rest
}: {
  config: Config;
  engine: Pick<Engine, 'capabilities'>;
  harnesses: readonly HarnessOffer[];
  /** Bytes for all trials together. Default: a part of the engine's memory. */
  memory: number | undefined;
} & Pick<WorkerProfile, 'version' | 'service' | 'pools' | 'concurrency'>): WorkerProfile {
  const { serverVersion: version, arch, cpus, memoryBytes: memory, runtimes } = engine.capabilities;
  const models = Object.entries(config.models).flatMap(([name, { aliases }]) => [name, ...aliases]);
  const bounded = (names: readonly string[]) => names.slice(0, fleetMessages.count.names);
  return {
    ...rest,
    format: fleetFormat,
    engine: { version, arch: architecture(arch), cpus, memory },
    trialMemory: Math.floor((given ?? memory * shareOfMemory) / rest.concurrency),
    labels: bounded([architecture(arch), ...config.labels]),
    models: bounded(models),
    harnesses: bounded(harnesses.map(({ name }) => name)),
    runtimes: bounded(runtimes),
    sandboxes: bounded([...new Set(['local', ...Object.keys(config.sandboxes)])]),
    profiles: bounded(Object.keys(config.profiles)),
  };
}

/** Needs in one form: equal ones are equal as JSON. */
export function needsOf({ memory = 0, ...asked }: Partial<Needs>): Needs {
  const sorted = kinds.map((kind) => [kind, [...new Set(asked[kind])].toSorted()]);
  return { memory: roundedUp(memory), ...Object.fromEntries(sorted) };
}

/** Trials that need no more memory than this run on any machine. */
const smallest = 512 * 1024 ** 2;

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
  return new Map(all.map((needs) => [JSON.stringify(needs), needs])).values().toArray();
}

/** What the trials of a case on a variant need of a worker. */
export function plannedNeeds(
  planned: PlannedCase,
  variant: PlannedVariant,
  judges: readonly string[],
): Needs {
  const { request, local } = planned;
  const { userModel } = variant;
  return variantNeeds(
    { ...variant, sandbox: sandboxIn(variant.sandbox, local.environment) },
    [...(request.user && userModel !== undefined ? [userModel] : []), ...judges],
    environmentsOf(planned).flatMap(({ needs = [] }) => needs),
  );
}

function variantNeeds(
  { sandbox, harness, model, modelConfig }: PlannedVariant,
  models: readonly string[],
  labels: readonly string[] = [],
): Needs {
  const { memory, needs = [], runtime } = sandbox;
  return needsOf({
    memory,
    labels: [...needs, ...labels],
    models: [...(modelConfig ? [model] : []), ...models],
    harnesses: [harness],
    runtimes: runtime === undefined ? [] : [runtime],
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
  const own = { sandboxes: [sandbox], profiles: profile === undefined ? [] : [profile] };
  const known = knownVariant(variant, config, harnesses);
  if (typeof known !== 'string') return { ...variantNeeds(known, daemon.judges), ...own };
  const offer = harnesses.find(({ name }) => name === harness);
  const models = !offer || needsModel(variant.model, offer) ? [variant.model] : [];
  return needsOf({ models, harnesses: [harness], ...own });
}

/** One thing that a trial needs. */
interface Need {
  /** `has the label gpu` */
  requirement: string;
  isMet(profile: WorkerProfile): boolean;
  /** What to say besides if no worker has it. */
  hint?: (workers: readonly WorkerProfile[]) => string;
}

function partsOf({ memory, ...names }: Needs): Need[] {
  return [
    ...kinds.flatMap((kind) =>
      names[kind].map((name) => ({
        requirement: having[kind](name),
        isMet: (worker: WorkerProfile) => worker[kind].includes(name),
      })),
    ),
    {
      requirement: `has ${memoryText(memory)} of memory for a trial`,
      isMet: ({ trialMemory }) => memory <= Math.max(smallest, trialMemory),
      hint(workers) {
        const most = Math.max(...workers.map(({ trialMemory }) => trialMemory));
        return ` (the most is ${memoryText(most)}: fewer trials at a time leave more for each)`;
      },
    },
  ];
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
  if (none) return `no worker ${none.requirement}${none.hint?.(own) ?? ''}`;
  const rare = parts.filter(({ isMet }) => !own.every(isMet)).map(({ requirement }) => requirement);
  return `no worker has all of this: ${rare.map((requirement) => `it ${requirement}`).join(', ')}`;
}

/** `512 MiB`, `2.5 GiB` */
export function memoryText(bytes: number): string {
  const GiB = 1024 ** 3;
  return bytes < GiB ? `${Math.round(bytes / 1024 ** 2)} MiB` : `${Number((bytes / GiB).toFixed(1))} GiB`;
}
