import type { Check } from '../check.ts';
import type { SandboxRuntime } from '../runtimes.ts';
import { engineClock, engineLimits, engineReachable, engineRuntime } from './engine.ts';
import { baseImage, engineDisk, leftovers, sandboxes, snapshots } from './engine-content.ts';
import { sealedSandbox } from './sealed-sandbox.ts';
import { certificates, configuration, dataFolder, modelKeys, nodeVersion, service } from './this-machine.ts';

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
