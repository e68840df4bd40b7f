import { z } from 'zod';
import { fleetMessages } from '../../bounds/fleet.ts';
import { fleetFormat } from '../format.ts';
import { hashOf } from '../storage/contents.ts';

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
