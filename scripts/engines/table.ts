import { OffsiteError } from '../../src/base/offsite-error.ts';
import { dockerEngines } from './docker.ts';
import { machineEngines } from './machines.ts';
import { podmanEngines } from './podman.ts';
import { remoteEngines } from './remote.ts';
import { runtimeEngines } from './runtimes.ts';
import type { EngineEntry } from './test-engine.ts';

/** Every engine that tests can be run against. */
export const engineTable: readonly EngineEntry[] = [
  ...dockerEngines,
  ...remoteEngines,
  ...runtimeEngines,
  ...podmanEngines,
  ...machineEngines,
];

/** Throws an `input` error if there is none of that name. */
export function engineEntry(name: string): EngineEntry {
  const found = engineTable.find((entry) => entry.name === name);
  if (found !== undefined) return found;
  throw new OffsiteError(`There is no engine ${name} to test with.`, {
    code: 'ENGINE_UNKNOWN',
    kind: 'input',
    hint: `There are ${engineTable.map((entry) => entry.name).join(', ')}.`,
  });
}
