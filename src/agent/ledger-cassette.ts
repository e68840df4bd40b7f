import type { Cassette, RecordedExchange, RecordedTrial } from '../gateway/replay/cassette.ts';
import { isCount, recordedExchange } from '../gateway/replay/recorded-exchange.ts';
import type { StoredBatch } from '../ledger/batches.ts';
import { type ListedTrial, listTrials } from '../ledger/find.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { OffsiteError } from '../offsite-error.ts';
import { readRecord } from '../record/read-record.ts';
import type { TrialRecord } from '../record/trial-record.ts';

export interface LedgerCassette extends Cassette {
  /** Exchanges that were read and cannot be replayed, with the reason. */
  leftOut(): readonly string[];
}

/**
 * The finished trials of a batch as a cassette. Each is read from the ledger when it is first needed. Throws
 * `NOT_RECORDED` if the batch asked models and kept no bodies.
 */
export function ledgerCassette(ledger: Ledger, batch: StoredBatch): LedgerCassette {
  const finished = listTrials(ledger.records, batch.key).filter(({ result }) => result !== undefined);
  return cassetteOf(
    ledger,
    batch.id,
    finished.map((trial) => ({ trial, upTo: Number.POSITIVE_INFINITY })),
  );
}

/** The beginning of one trial as a cassette: its first exchanges. Throws as {@link ledgerCassette} does. */
export function trialCassette(
  ledger: Ledger,
  name: string,
  trial: ListedTrial,
  upTo: number,
): LedgerCassette {
  return cassetteOf(ledger, name, [{ trial, upTo }]);
}

function cassetteOf(
  ledger: Ledger,
  name: string,
  trials: readonly { trial: ListedTrial; upTo: number }[],
): LedgerCassette {
  const leftOut: string[] = [];
  const records = trials.map((one) => ({ ...one, record: recordOf(ledger, one.trial) }));
  const asked = records.flatMap(({ record }) => record.models?.exchanges ?? []);
  if (asked.length > 0 && !asked.some(({ requestBody }) => requestBody !== undefined))
    throw notRecorded(name);
  return {
    name,
    trials: records.map(({ trial, record, upTo }) => recordedTrial(ledger, trial, record, upTo, leftOut)),
    leftOut: () => leftOut,
  };
}

function recordOf(ledger: Ledger, { result = '', caseName, variant, ordinal }: ListedTrial): TrialRecord {
  return readRecord(ledger.blobs.readClean(result), `the record of ${caseName} · ${variant} #${ordinal}`);
}

function recordedTrial(
  ledger: Ledger,
  { caseName, variant, ordinal }: ListedTrial,
  { subject, models }: TrialRecord,
  upTo: number,
  leftOut: string[],
): RecordedTrial {
  let read: RecordedExchange[] | undefined;
  return {
    label: { case: caseName, variant, harness: subject?.harness ?? '', ordinal },
    exchanges() {
      read ??= (models?.exchanges ?? []).flatMap((exchange, index) => {
        const number = index + 1;
        if (number > upTo || isCount(exchange)) return [];
        const recorded = recordedExchange(exchange, number, (sha256) => ledger.blobs.tryReadClean(sha256));
        if (typeof recorded !== 'string') return [recorded];
        leftOut.push(`${caseName} · ${variant} #${ordinal}, request ${number}: ${recorded}`);
        return [];
      });
      return read;
    },
  };
}

function notRecorded(name: string): OffsiteError {
  return new OffsiteError(`${name} kept no exchanges with its models`, {
    code: 'NOT_RECORDED',
    kind: 'input',
    hint: 'Set `record: full` for its models in offsite.yaml, and run it again.',
  });
}
