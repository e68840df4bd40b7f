import type { PhaseInput } from './phase.ts';

/**
 * Bytes that the files of the workspace may have together, by their lengths. What prepare made is no fault of the
 * agent's. What the harness filled beyond its limit was really written; a file that is all hole was not.
 */
export async function largestWorkspace(input: PhaseInput): Promise<number> {
  const { spec, container, preparedBytes, signal, found } = input;
  const written = found.harness?.ended === 'out-of-disk' ? await container.writtenBytes(signal) : 0;
  return preparedBytes + spec.sandbox.disk + written;
}
