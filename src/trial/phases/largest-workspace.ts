import type { PhaseInput } from './phase.ts';

/**
 * The maximum total length in bytes of the workspace's files. What prepare made is not the agent's fault. If
 * the harness exceeded its disk limit, the bytes it really wrote count too; a sparse file's holes do not.
 */
export async function largestWorkspace(input: PhaseInput): Promise<number> {
  const { spec, container, preparedBytes, signal, found } = input;
  const written = found.harness?.ended === 'out-of-disk' ? await container.writtenBytes(signal) : 0;
  return preparedBytes + spec.sandbox.disk + written;
}
