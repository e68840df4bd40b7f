import type { Check } from './check.ts';
import { baseImage } from './checks/base-image.ts';
import { engineClock, engineLimits, engineReachable, engineRuntime } from './checks/engine.ts';
import { engineDisk } from './checks/engine-disk.ts';
import { leftovers } from './checks/leftovers.ts';
import { sandboxes } from './checks/sandboxes.ts';
import { sealedSandbox } from './checks/sealed-sandbox.ts';
import { snapshots } from './checks/snapshots.ts';
import {
  certificates,
  configuration,
  dataFolder,
  modelKeys,
  nodeVersion,
  service,
} from './checks/this-machine.ts';
import type { SandboxRuntime } from './runtimes.ts';

/**
 * All checks of `offsite doctor`, in the order of the report: this machine, the service, the engine. There is
 * a sealed sandbox of each of the runtimes.
 */
export const checksOf = (runtimes: readonly SandboxRuntime[]): readonly Check[] => [
  nodeVersion,
  configuration,
  certificates,
  dataFolder,
  service,
  modelKeys,
  engineReachable,
  engineRuntime,
  engineLimits,
  engineClock,
  engineDisk,
  baseImage,
  sandboxes,
  ...runtimes.map(sealedSandbox),
  snapshots,
  leftovers,
];
