import { labelOf } from '../../ledger/find-target.ts';

/** Characters that shells read as they are, after the first one. */
const plain = /^[\w./:@%+,=#·-]+$/;

/** A trial as `offsite show` takes it, safe to paste into a shell. */
export function wordsFor(
  trial: { caseId: string; variant: string; ordinal: number },
  shortBatch?: string | undefined,
): string {
  const batch = shortBatch === undefined ? '' : `${shortBatch}:`;
  return shellWord(`${batch}${labelOf(trial)}#${trial.ordinal}`);
}

export function shellWord(word: string): string {
  if (plain.test(word) && !word.startsWith('#') && !word.startsWith('-')) return word;
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
