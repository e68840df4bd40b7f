import { labelOf } from '../../ledger/find-target.ts';
import { shellWord } from '../../text/shell-word.ts';

/** A trial as `offsite show` takes it, safe to paste into a shell. */
export function wordsFor(
  trial: { caseId: string; variant: string; ordinal: number },
  shortBatch?: string | undefined,
): string {
  const batch = shortBatch === undefined ? '' : `${shortBatch}:`;
  return shellWord(`${batch}${labelOf(trial)}#${trial.ordinal}`);
}
