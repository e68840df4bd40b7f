import { messageOf, OffsiteError } from '../base/offsite-error.ts';
import type { StoredBatch } from '../ledger/batches.ts';
import { type ListedTrial, listAttempts, listTrials } from '../ledger/find.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { Verdict } from '../ledger/trials.ts';
import type { ExportedTrial } from '../record/exported-trial.ts';
import { namedBlobs } from '../record/named-blobs.ts';
import { readRecord } from '../record/read-record.ts';
import type { TrialRecord } from '../record/trial-record.ts';

export interface ReadOptions {
  /** Only trials with these verdicts. Default: all finished trials. */
  only?: readonly Verdict[] | undefined;
  /** Whether to read the texts that records refer to. */
  withOutputs?: boolean | undefined;
  /** Receives why a record cannot be read. Its trial is left out. */
  unreadable?: ((message: string) => void) | undefined;
}

/** The finished trials of a batch one by one, in the order of its cases, variants and ordinals. */
export function* exportedTrials(
  ledger: Ledger,
  batch: StoredBatch,
  { only, withOutputs = false, unreadable = () => undefined }: ReadOptions = {},
): Generator<ExportedTrial> {
  const { id, service, suite, startedAt, commit } = batch;
  for (const trial of listTrials(ledger.records, batch.key)) {
    if (trial.verdict === undefined || trial.result === undefined) continue;
    if (only && !only.includes(trial.verdict)) continue;
    const read = (sha256: string) => recordOf(ledger, sha256, trial, unreadable);
    const record = read(trial.result);
    if (!record) continue;
    const { runId, caseId, caseName, variant, ordinal } = trial;
    yield {
      version: 1,
      batch: { id, service, suite, startedAt, ...(commit && { commit }) },
      run: { id: runId, caseId, caseName, variant },
      ordinal,
      attempts: listAttempts(ledger.records, trial.key).map(({ result, ...attempt }) => ({
        ...attempt,
        ...(result !== undefined && { record: read(result) }),
      })),
      record,
      ...(withOutputs && { contents: contentsOf(ledger, record) }),
    };
  }
}

function recordOf(
  { blobs }: Ledger,
  sha256: string,
  { caseName, variant, ordinal }: ListedTrial,
  unreadable: (message: string) => void,
): TrialRecord | undefined {
  try {
    return readRecord(blobs.readClean(sha256), `the record of ${caseName} · ${variant} #${ordinal}`);
  } catch (error) {
    if (!(error instanceof OffsiteError || error instanceof SyntaxError)) throw error;
    unreadable(messageOf(error));
    return undefined;
  }
}

/** The texts that a record refers to. What was pruned or is damaged is left out. */
function contentsOf(ledger: Ledger, record: TrialRecord) {
  const named = namedBlobs(record).filter(({ of }) => of !== 'artifact');
  const contents: Record<string, string> = {};
  for (const { sha256 } of named) {
    const content = ledger.blobs.tryReadClean(sha256);
    if (content) contents[sha256] = content.toString('utf8');
  }
  return contents;
}
