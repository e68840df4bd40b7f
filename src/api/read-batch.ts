import { readReference } from '../comparison/side.ts';
import type { StoredBatch } from '../ledger/batches.ts';
import { type ListedTrial, listTrials } from '../ledger/find.ts';
import { labelOf } from '../ledger/find-target.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { listingsOf } from '../ledger/listings.ts';
import { type TrialListing, whyText } from '../record/listing.ts';
import { readRecord } from '../record/read-record.ts';
import type { Batch, Trial, TrialRecord } from './types.ts';

/** A batch, or a set of batches as one. Throws as `findBatch` does. */
export function batchNamed(ledger: Ledger, name: string): Batch {
  const { batches } = readReference(ledger, name);
  return batchOf(ledger, batches, ledger.sets.find(name)?.id);
}

/** The batches of one suite as one. Reads no records. */
export function batchOf(ledger: Ledger, batches: readonly StoredBatch[], set?: string): Batch {
  const [first] = batches;
  if (!first) throw new Error('there is no batch');
  const listed = batches.flatMap((batch) => {
    const listings = listingsOf(ledger, batch.key);
    return listTrials(ledger.records, batch.key).map((trial) => {
      return { batch, trial, listing: listings.get(trial.key) };
    });
  });
  const finished = listed.filter(({ trial }) => trial.verdict !== undefined);
  const trials = finished.map(({ batch, trial, listing }) => trialOf(ledger, batch.id, trial, listing));
  const count = (verdict: Trial['verdict']) => trials.filter((trial) => trial.verdict === verdict).length;
  const [passed, failed] = [count('passed'), count('failed')];
  return {
    id: set ?? first.id,
    batchIds: batches.map(({ id }) => id),
    suite: first.suite,
    service: first.service,
    startedAt: Math.min(...batches.map(({ startedAt }) => startedAt)),
    ...{ passed, failed, void: count('void') },
    passRate: passed + failed === 0 ? undefined : passed / (passed + failed),
    unfinished: listed.length - finished.length,
    tokens: sumOf(trials.map(({ tokens }) => tokens)),
    costUsd: sumOf(trials.map(({ costUsd }) => costUsd)),
    trials,
  };
}

function trialOf(
  { blobs }: Ledger,
  batchId: string,
  { caseId, variant, ordinal, verdict = 'void', result = '' }: ListedTrial,
  listing: TrialListing | undefined,
): Trial {
  const name = `${labelOf({ caseId, variant })}#${ordinal}`;
  // What the ledger has of it is in a file, so it can be read after the ledger is closed.
  const record = () => readRecord(blobs.readClean(result), `the record of ${name}`);
  return {
    name: `${batchId}:${name}`,
    ...{ case: caseId, variant, ordinal, verdict },
    why: listing ? whyText(listing) : 'its record cannot be read',
    startedAt: listing?.startedAt,
    durationMs: listing && listing.finishedAt - listing.startedAt,
    ...{ tokens: listing?.totalTokens, costUsd: listing?.costUsd },
    recordFile: blobs.pathOf(result),
    record: (): TrialRecord => record(),
    artifacts: () =>
      (record().artifacts ?? []).map(({ path, byteSize, sha256 }) => {
        return { path, byteSize, sha256, file: blobs.pathOf(sha256) };
      }),
  };
}

/** The sum; undefined if a part is not known. */
function sumOf(parts: readonly (number | undefined)[]): number | undefined {
  return parts.includes(undefined) ? undefined : parts.reduce((sum = 0, part = 0) => sum + part, 0);
}
