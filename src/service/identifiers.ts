import { randomBytes } from 'node:crypto';

/**
 * An identifier shows what it names: `batch_` and 15 random bytes, so that others cannot be guessed. The part
 * after the prefix can be typed alone, so it never looks like an option.
 */
export function newIdentifier(prefix: 'org' | 'key' | 'batch' | 'req'): string {
  const random = randomBytes(15).toString('base64url');
  return /^[-_]/.test(random) ? newIdentifier(prefix) : `${prefix}_${random}`;
}

/**
 * A run's identifier derives from its batch's. The runs of a batch are then next to one another in the index
 * of identifiers: with random ones, a start would change as many pages of a large index as it has runs.
 */
export function runIdentifier(batchId: string, taskIndex: number): string {
  return `${batchId.replace(/^batch_/, 'run_')}_${taskIndex}`;
}

/** A trial has no row before it is reported, so its identifier derives from its run's. */
export function trialIdentifier(runId: string, ordinal: number): string {
  return `trial_${runId.replace(/^run_/, '')}_${ordinal}`;
}
