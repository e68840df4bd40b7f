import { z } from 'zod';
import { fleetMessages } from '../../bounds/fleet.ts';
import type { Engine } from '../../engine/engine.ts';
import type { Config } from '../../suite/config-file.ts';
import type { HarnessOffer } from '../../suite/planned-variant.ts';
import { architecture } from '../../suite/quantities.ts';
import { fleetFormat } from '../format.ts';

const Name = z.string().max(fleetMessages.bytes.text);
const Names = z.array(Name).max(fleetMessages.count.names);

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
  /** The labels in the configuration, and the architecture. */
  labels: Names,
  models: Names,
  harnesses: Names,
  runtimes: Names,
  sandboxes: Names,
  profiles: Names,
  /** Set when the worker takes no more trials, because it ends. */
  ended: z.boolean().optional(),
});
export type WorkerProfile = z.infer<typeof WorkerProfile>;

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
