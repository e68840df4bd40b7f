import { messageOf, OffsiteError } from '../../offsite-error.ts';
import type { Attempt, Check, Finding, Surroundings } from './check.ts';

export type Examined = { name: string } & Finding;

/**
 * Runs the checks one after the other. Rejects where the user interrupts, or a check meets a defect of ours.
 */
export async function examine(checks: readonly Check[], surroundings: Surroundings): Promise<Examined[]> {
  const examined: Examined[] = [];
  for (const check of checks) {
    surroundings.signal.throwIfAborted();
    try {
      examined.push({ name: check.name, ...(await check.run(surroundings)) });
    } catch (error) {
      surroundings.signal.throwIfAborted();
      examined.push({ name: check.name, ...failureOf(error) });
    }
  }
  return examined;
}

/** What a thrown error means for the user. Rethrows what is a defect of ours. */
export function failureOf(error: unknown): Finding {
  if (error instanceof OffsiteError) {
    const mend = error.hint ?? 'Correct what is named here.';
    return { state: 'fail', kind: error.kind, found: error.message, mend };
  }
  // Of the system (EACCES, ENOSPC) or of SQLite; a defect of ours has no code.
  if (error instanceof Error && 'code' in error) {
    return {
      state: 'fail',
      kind: 'infrastructure',
      found: messageOf(error),
      mend: 'See that disk, permissions and network of this machine are as they should be.',
    };
  }
  throw error;
}

export async function attempt<Value>(get: () => Value | Promise<Value>): Promise<Attempt<Value>> {
  try {
    return { got: true, value: await get() };
  } catch (error) {
    return { got: false, error };
  }
}
