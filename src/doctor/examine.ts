import { messageOf, OffsiteError } from '../base/offsite-error.ts';
import type { Check, Finding, Prerequisite, Surroundings } from './check.ts';

export type Examined = { name: string } & Finding;

/**
 * Runs the checks one after the other. Rejects if the user interrupts, or if a check meets a bug in Offsite.
 */
export async function examine(checks: readonly Check[], surroundings: Surroundings): Promise<Examined[]> {
  const examined: Examined[] = [];
  for (const check of checks) {
    surroundings.signal.throwIfAborted();
    if (surroundings.configFailure !== undefined && (check.ofEngine || check.ofConfiguration)) {
      const found = 'the configuration cannot be read';
      examined.push({ name: check.name, state: 'skipped', found });
      continue;
    }
    try {
      examined.push({ name: check.name, ...(await check.run(surroundings)) });
    } catch (error) {
      surroundings.signal.throwIfAborted();
      examined.push({ name: check.name, ...failureOf(error) });
    }
  }
  return examined;
}

/** What a thrown error means for the user. Rethrows a bug in Offsite. */
export function failureOf(error: unknown): Finding {
  if (error instanceof OffsiteError) {
    const fix = error.hint ?? 'Correct what is named here.';
    return { state: 'fail', kind: error.kind, found: error.message, fix };
  }
  // Errors of the system (EACCES, ENOSPC) and of SQLite have a code; a bug in Offsite has none.
  if (error instanceof Error && 'code' in error) {
    return {
      state: 'fail',
      kind: 'infrastructure',
      found: messageOf(error),
      fix: "Check this machine's disk, permissions and network.",
    };
  }
  throw error;
}

export async function attempt<Value>(get: () => Value | Promise<Value>): Promise<Prerequisite<Value>> {
  try {
    return { got: true, value: await get() };
  } catch (error) {
    return { got: false, error };
  }
}
