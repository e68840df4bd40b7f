import type { Check } from './check.ts';
import { baseImage } from './checks/base-image.ts';
import { certificates } from './checks/certificates.ts';
import { configuration } from './checks/configuration.ts';
import { dataFolder } from './checks/data-folder.ts';
import { engineReachable } from './checks/engine.ts';
import { engineClock } from './checks/engine-clock.ts';
import { engineDisk } from './checks/engine-disk.ts';
import { engineLimits } from './checks/engine-limits.ts';
import { leftovers } from './checks/leftovers.ts';
import { modelKeys } from './checks/model-keys.ts';
import { nodeVersion } from './checks/node.ts';
import { engineRuntime } from './checks/runtime.ts';
import { sandboxes } from './checks/sandboxes.ts';
import { sealedSandbox } from './checks/sealed-sandbox.ts';
import { service } from './checks/service.ts';
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
  leftovers,
];
