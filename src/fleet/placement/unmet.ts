import { type Needs, smallest } from './needs.ts';
import type { WorkerProfile } from './worker-profile.ts';

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
