import { randomBytes } from 'node:crypto';

/** Identifiers say what they name: `run_` and 15 random bytes, so that nobody can guess another's. */
export function newIdentifier(prefix: 'org' | 'key' | 'batch' | 'run' | 'req'): string {
  return `${prefix}_${randomBytes(15).toString('base64url')}`;
}

/** A trial needs no row before it is reported, so its identifier follows from its run's. */
export function trialIdentifier(runId: string, ordinal: number): string {
  return `trial_${runId.replace(/^run_/, '')}_${ordinal}`;
}
