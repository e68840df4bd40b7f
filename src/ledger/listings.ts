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

/** SQL that sets what lists show of a trial. The columns beside the listing are for sums. */
function setListing(listing: string, recordBytes: string): string {
  return `listing = ${listing}, record_bytes = ${recordBytes}, tokens = ${listing} ->> 'totalTokens',
    duration_ms = (${listing} ->> 'finishedAt') - (${listing} ->> 'startedAt'), cost_usd = ${listing} ->> 'costUsd',
    steady_clock = ${listing} ->> '$.steady.of', steady_from = ${listing} ->> '$.steady.startedAt',
    steady_to = ${listing} ->> '$.steady.finishedAt'`;
}

/** Stores what lists show of a finished trial. */
export function storeListing(
  records: Records,
  trial: TrialKey,
  { listing, recordBytes }: { listing: string; recordBytes: number },
): void {
  records.run(`UPDATE trials SET ${setListing('?2', '?3')} WHERE key = ?1`, trial, listing, recordBytes);
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
  const made = completeListings(ledger, batch, only);
  const rows = ledger.records.all(
    `SELECT trials.key, trials.verdict, trials.result, trials.record_bytes, trials.finished_at, trials.listing
     FROM trials JOIN runs ON runs.key = trials.run WHERE runs.batch = ?1 AND trials.result IS NOT NULL
       AND ${isWanted}`,
    batch,
    only ? JSON.stringify(only) : null,
  );
  return new Map(
    rows.flatMap((row): [TrialKey, TrialListing][] => {
      const key = Number(row.key);
      const read = made.get(key);
      if (!read && (row.listing === null || !isAsStored(row, ledger.blobs))) return [];
      const listing: TrialListing = read ?? JSON.parse(String(row.listing));
      const { verdict = row.verdict } = listing;
      return verdict === row.verdict ? [[key, listing]] : [];
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
 * Makes the listings of a batch's finished trials that have none, or one without a verdict: an older Offsite
 * ran them, or the service had the result. Leaves out records that cannot be read. Stores them, unless another
 * process writes or the disk is full: then they are made again the next time.
 */
export function completeListings(
  { records, blobs }: Stored,
  batch: BatchKey,
  only?: readonly TrialKey[],
): Map<TrialKey, TrialListing> {
  const without = records.all(
    `SELECT trials.key, trials.result FROM trials JOIN runs ON runs.key = trials.run
     WHERE runs.batch = ?1 AND trials.result IS NOT NULL AND trials.listing ->> '$.verdict' IS NULL AND ${isWanted}`,
    batch,
    only ? JSON.stringify(only) : null,
  );
  const made = without.flatMap(({ key, result }) => {
    try {
      const record = readRecord(blobs.readClean(String(result)), 'the record');
      const recordBytes = blobs.stat(String(result))?.byteSize ?? 0;
      return [{ key: Number(key), recordBytes, listing: listingOf(record) }];
    } catch (error) {
      if (error instanceof OffsiteError || error instanceof SyntaxError) return [];
      throw error;
    }
  });
  if (made.length > 0)
    records.runIfPossible(
      `UPDATE trials SET ${setListing('made.listing', 'made.bytes')}
       FROM (SELECT value ->> 0 AS key, value ->> 1 AS listing, value ->> 2 AS bytes FROM json_each(?)) AS made
       WHERE trials.key = made.key`,
      JSON.stringify(made.map(({ key, listing, recordBytes }) => [key, JSON.stringify(listing), recordBytes])),
    );
  return new Map(made.map(({ key, listing }) => [key, listing]));
}
