import { OffsiteError } from '../base/offsite-error.ts';
import { listingOf, type TrialListing } from '../record/listing.ts';
import { readRecord } from '../record/read-record.ts';
import type { BlobStore } from './blobs.ts';
import type { BatchKey, Records, TrialKey } from './records.ts';

/** The SQL condition that a trial is in the list of keys that is the second parameter, if there is a list. */
const isWanted = '(?2 IS NULL OR trials.key IN (SELECT value FROM json_each(?2)))';

interface Stored {
  records: Records;
  blobs: BlobStore;
}

/** Stores what lists show of a finished trial. The columns beside it are for sums. */
export function storeListing(
  records: Records,
  trial: TrialKey,
  { listing, recordBytes }: { listing: string; recordBytes: number },
): void {
  records.run(
    `UPDATE trials SET listing = ?2, record_bytes = ?3, duration_ms = (?2 ->> 'finishedAt') - (?2 ->> 'startedAt'),
       tokens = ?2 ->> 'totalTokens', cost_usd = ?2 ->> 'costUsd', steady_clock = ?2 ->> '$.steady.of',
       steady_from = ?2 ->> '$.steady.startedAt', steady_to = ?2 ->> '$.steady.finishedAt' WHERE key = ?1`,
    trial,
    listing,
    recordBytes,
  );
}

/**
 * What lists show of the finished trials of a batch, except those whose record is missing, damaged or of
 * another verdict.
 *
 * @param only set to read only these trials
 */
export function listingsOf(
  ledger: Stored,
  batch: BatchKey,
  only?: readonly TrialKey[],
): Map<TrialKey, TrialListing> {
  completeListings(ledger, batch, only);
  const rows = ledger.records.all(
    `SELECT trials.key, trials.verdict, trials.result, trials.record_bytes, trials.finished_at, trials.listing
     FROM trials JOIN runs ON runs.key = trials.run WHERE runs.batch = ?1 AND trials.listing IS NOT NULL
       AND ${isWanted}`,
    batch,
    only ? JSON.stringify(only) : null,
  );
  return new Map(
    rows.flatMap((row): [TrialKey, TrialListing][] => {
      const listing: TrialListing = JSON.parse(String(row.listing));
      const { verdict = row.verdict } = listing;
      return verdict === row.verdict && isAsStored(row, ledger.blobs) ? [[Number(row.key), listing]] : [];
    }),
  );
}

/** Reads the record only if its file was written after its trial ended. */
function isAsStored(
  { result, record_bytes, finished_at }: Record<string, unknown>,
  blobs: BlobStore,
): boolean {
  const found = blobs.stat(String(result));
  if (!found || found.byteSize !== record_bytes) return false;
  return found.putAt < Number(finished_at) + 1 || blobs.tryRead(String(result)) !== undefined;
}

/**
 * Stores the listings of a batch's finished trials that have none, or one without a verdict: an older Offsite
 * ran them, or the service had the result. Leaves out records that cannot be read.
 */
export function completeListings(
  { records, blobs }: Stored,
  batch: BatchKey,
  only?: readonly TrialKey[],
): void {
  const without = records.all(
    `SELECT trials.key, trials.result FROM trials JOIN runs ON runs.key = trials.run
     WHERE runs.batch = ?1 AND trials.result IS NOT NULL AND trials.listing ->> '$.verdict' IS NULL AND ${isWanted}`,
    batch,
    only ? JSON.stringify(only) : null,
  );
  if (without.length === 0) return;
  const listings = without.flatMap(({ key, result }) => {
    try {
      const record = readRecord(blobs.readClean(String(result)), 'the record');
      const recordBytes = blobs.stat(String(result))?.byteSize ?? 0;
      return [{ key: Number(key), recordBytes, listing: JSON.stringify(listingOf(record)) }];
    } catch (error) {
      if (error instanceof OffsiteError || error instanceof SyntaxError) return [];
      throw error;
    }
  });
  records.transaction(() => {
    for (const { key, ...stored } of listings) storeListing(records, key, stored);
  });
}
