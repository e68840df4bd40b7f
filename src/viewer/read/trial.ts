import { messageOf, OffsiteError } from '../../base/offsite-error.ts';
import { auditOf } from '../../ledger/audits.ts';
import { laterGradings } from '../../ledger/later-gradings.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { listAttempts, trialByKey } from '../../ledger/trial-rows.ts';
import type { AuditMark, LaterGrading } from '../../record/audit.ts';
import type { Cause } from '../../record/cause.ts';
import {
  type CutLimits,
  cutMiddle,
  cutRecord,
  pageLimits,
  shownValue,
  valueAt,
} from '../model/cut-record.ts';
import type { RecordReference } from '../model/data-source.ts';
import type { TrialPage } from '../model/shapes.ts';
import { batchName, trialRow } from './batches.ts';
import type { RecordReader } from './record-reader.ts';

/** A trial with its record, or the record of one of its attempts; undefined if the ledger has none. */
export function readTrial(
  ledger: Ledger,
  reader: RecordReader,
  { trial: key, attempt }: RecordReference,
  limits = pageLimits,
): TrialPage | undefined {
  const trial = trialByKey(ledger.records, key);
  const batch = trial && batchName(ledger, trial.batch);
  if (!trial || !batch) return undefined;
  const attempts = listAttempts(ledger.records, key);
  const sha256 =
    attempt === undefined ? trial.result : attempts.find(({ number }) => number === attempt)?.result;
  return {
    batch,
    trial: trialRow(trial, attempts.at(-1), auditMark(ledger, key)),
    attempts: attempts.map(({ number, startedAt, endedAt, ending, cause, result }) => ({
      number,
      startedAt,
      endedAt,
      ending,
      cause: cause as Cause | undefined,
      hasRecord: result !== undefined,
    })),
    gradings: gradingsOf(ledger, reader, trial),
    attempt,
    ...(sha256 !== undefined && found(reader, sha256, limits)),
  };
}

function auditMark({ records }: Ledger, key: number): AuditMark | undefined {
  const audit = auditOf(records, key);
  return audit && { at: audit.at, standing: audit.standing };
}

function gradingsOf(
  ledger: Ledger,
  reader: RecordReader,
  { key, result }: { key: number; result: string | undefined },
): LaterGrading[] {
  if (result === undefined || ledger.gradings.of(key).length === 0) return [];
  try {
    return laterGradings(ledger, key, reader.read(result));
  } catch (error) {
    // The page says that the record cannot be read.
    if (error instanceof OffsiteError || error instanceof SyntaxError) return [];
    throw error;
  }
}

function found(
  reader: RecordReader,
  sha256: string,
  limits: CutLimits,
): Pick<TrialPage, 'found' | 'unreadable'> {
  try {
    return { found: cutRecord(reader.read(sha256), limits) };
  } catch (error) {
    if (error instanceof OffsiteError || error instanceof SyntaxError)
      return { unreadable: messageOf(error) };
    throw error;
  }
}

/** A value of a record as text; undefined if there is none. Throws as {@link RecordReader.read} does. */
export function readValue(
  { records }: Ledger,
  reader: RecordReader,
  { trial, attempt }: RecordReference,
  pointer: string,
  limit?: number,
): string | undefined {
  const sha256 =
    attempt === undefined
      ? trialByKey(records, trial)?.result
      : listAttempts(records, trial).find(({ number }) => number === attempt)?.result;
  if (sha256 === undefined) return undefined;
  const value = valueAt(reader.read(sha256), pointer);
  if (value === undefined) return undefined;
  const text = shownValue(value);
  return limit === undefined ? text : cutMiddle(text, limit);
}
