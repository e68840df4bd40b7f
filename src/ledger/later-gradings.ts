import { OffsiteError } from '../base/offsite-error.ts';
import { printedText } from '../bounds/anyone.ts';
import type { LaterGrading } from '../record/audit.ts';
import { checksBeside } from '../record/checks-beside.ts';
import { failuresOf } from '../record/failures.ts';
import { readRecord } from '../record/read-record.ts';
import type { TrialRecord } from '../record/trial-record.ts';
import { cut } from '../text/printable.ts';
import type { Ledger } from './ledger.ts';
import type { TrialKey } from './records.ts';

/** The later gradings of a trial, oldest first. Lists and texts are cut to what is printed. */
export function laterGradings(
  { gradings, blobs }: Pick<Ledger, 'gradings' | 'blobs'>,
  trial: TrialKey,
  first: TrialRecord,
): LaterGrading[] {
  const { listed } = printedText.count;
  return gradings.of(trial).map(({ gradedAt, verdict, result }): LaterGrading => {
    const known = { gradedAt, verdict, record: result };
    try {
      const record = readRecord(blobs.readClean(result), 'the record of a later grading');
      const { cause, regrade } = record;
      return {
        ...known,
        suite: regrade?.suite,
        notes: regrade?.notes ?? [],
        cause: cause && { kind: cause.kind, phase: cause.phase, message: shortened(cause.message) },
        failures: failuresOf(record).slice(0, listed),
        checks: checksBeside(first, record)
          .slice(0, listed)
          .map((check) => ({ ...check, name: shortened(check.name) })),
      };
    } catch (error) {
      if (!(error instanceof OffsiteError)) throw error;
      return { ...known, notes: [], failures: [], checks: [], unreadable: error.message };
    }
  });
}

function shortened(text: string): string {
  return cut(text, printedText.bytes.line);
}
