import { auditOf } from '../../ledger/audits.ts';
import { laterGradings } from '../../ledger/later-gradings.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { listAttempts, trialByKey } from '../../ledger/trial-rows.ts';
import type { LaterGrading } from '../../record/audit.ts';
import { cutMiddle, cutRecord, pageLimits, shownValue, valueAt } from '../model/cut-record.ts';
import type { RecordReference } from '../model/data-source.ts';
import type { TrialPage } from '../model/shapes.ts';
import { batchName, readable, trialRow } from './batches.ts';
import type { RecordReader } from './record-reader.ts';

/** A trial with its record, or the record of one of its attempts; undefined if the ledger has none. */
export function readTrial(
  ledger: Ledger,
  reader: RecordReader,
  { trial: key, attempt }: RecordReference,
  limits = pageLimits,
): TrialPage | undefined {
  const trial = trialByKey(ledger.records, key);
  if (!trial) return undefined;
  const attempts = listAttempts(ledger.records, key);
  const sha256 = resultOf(ledger, { trial: key, attempt });
  const read = sha256 === undefined ? {} : readable(() => cutRecord(reader.read(sha256), limits));
  const audit = auditOf(ledger.records, key);
  return {
    batch: batchName(ledger, trial.batch),
    trial: trialRow(trial, attempts.at(-1), audit && { at: audit.at, standing: audit.standing }),
    attempts: attempts.map(({ result, ...each }) => ({ ...each, hasRecord: result !== undefined })),
    gradings: gradingsOf(ledger, reader, trial),
    attempt,
    found: read.value,
    unreadable: read.unreadable,
  };
}

function gradingsOf(
  ledger: Ledger,
  reader: RecordReader,
  { key, result }: { key: number; result: string | undefined },
): LaterGrading[] {
  if (result === undefined || ledger.gradings.of(key).length === 0) return [];
  // The page says if the record cannot be read.
  return readable(() => laterGradings(ledger, key, reader.read(result))).value ?? [];
}

/** The blob with a record; undefined if there is none. */
function resultOf({ records }: Ledger, { trial, attempt }: RecordReference): string | undefined {
  if (attempt === undefined) return trialByKey(records, trial)?.result;
  return listAttempts(records, trial).find(({ number }) => number === attempt)?.result;
}

/** A value of a record as text; undefined if there is none. Throws as {@link RecordReader.read} does. */
export function readValue(
  ledger: Ledger,
  reader: RecordReader,
  reference: RecordReference,
  pointer: string,
  limit?: number,
): string | undefined {
  const sha256 = resultOf(ledger, reference);
  if (sha256 === undefined) return undefined;
  const value = valueAt(reader.read(sha256), pointer);
  if (value === undefined) return undefined;
  const text = shownValue(value);
  return limit === undefined ? text : cutMiddle(text, limit);
}
