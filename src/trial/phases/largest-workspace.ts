import { diskMeasure } from '../../bounds/sandbox.ts';
import type { PhaseInput } from './phase.ts';

/**
 * The maximum total length in bytes of the workspace's files. What prepare made is not the agent's fault. If
 * the harness exceeded its disk limit, what it really took of the disk counts too, up to what it can take
 * before it is ended.
 */
export async function largestWorkspace(input: PhaseInput): Promise<number> {
  const { spec, container, prepared, signal, found } = input;
  const { disk } = spec.sandbox;
  const taken = found.harness?.ended === 'out-of-disk' ? await container.diskUse(signal) : 0;
  return (await prepared()).bytes + disk + Math.min(taken, disk + diskMeasure.bytes.margin);
}
