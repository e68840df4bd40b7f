import { randomBytes } from 'node:crypto';

/** An identifier shows what it names: `run_` and 15 random bytes, so that others cannot be guessed. */
export function newIdentifier(prefix: 'org' | 'key' | 'batch' | 'run' | 'req'): string {
  return `${prefix}_${randomBytes(15).toString('base64url')}`;
}

/** A trial has no row before it is reported, so its identifier derives from its run's. */
export function trialIdentifier(runId: string, ordinal: number): string {
  return `trial_${runId.replace(/^run_/, '')}_${ordinal}`;
}
