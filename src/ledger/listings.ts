import { messageOf, OffsiteError } from '../base/offsite-error.ts';
import { listingOf, type TrialListing } from '../record/listing.ts';
import { readRecord } from '../record/read-record.ts';
import type { BlobStore } from './blobs.ts';
import type { BatchKey, Records, TrialKey } from './records.ts';

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

/** How {@link completeListings} reads records, for a caller that must not wait until all are read. */
export interface ReadingOfRecords {
  /** How many records to read now. */
  most: number;
  /** By their hash, the records that could not be read. Those that have not changed are not read again. */
  unreadable: Map<string, UnreadableRecord>;
}

interface UnreadableRecord {
  why: string;
  /** Epoch milliseconds: when its file was put; undefined if it was missing. */
  putAt: number | undefined;
}

/**
 * What lists show of the finished trials of a batch, except those whose record is missing, damaged or of
 * another verdict.
 */
export function listingsOf(ledger: Stored, batch: BatchKey): Map<TrialKey, TrialListing> {
  return listingsSoFar(ledger, batch).listings;
}

/** As {@link listingsOf}, and the trials whose records are still to be read. */
export function listingsSoFar(
  ledger: Stored,
  batch: BatchKey,
  reading?: ReadingOfRecords,
): { listings: Map<TrialKey, TrialListing>; left: ReadonlySet<TrialKey> } {
  const { made, left } = completeListings(ledger, batch, reading);
  const rows = ledger.records.all(
    `SELECT trials.key, trials.verdict, trials.result, trials.record_bytes, trials.finished_at, trials.listing
     FROM trials JOIN runs ON runs.key = trials.run WHERE runs.batch = ?1 AND trials.result IS NOT NULL`,
    batch,
  );
  const listings = new Map(
    rows.flatMap((row): [TrialKey, TrialListing][] => {
      const key = Number(row.key);
      const read = made.get(key);
      if (!read && (row.listing === null || !isAsStored(row, ledger.blobs))) return [];
      const listing: TrialListing = read ?? JSON.parse(String(row.listing));
      const { verdict = row.verdict } = listing;
      return verdict === row.verdict ? [[key, listing]] : [];
    }),
  );
  return { listings, left };
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
 * ran them, or the service had the result. Leaves out records that cannot be read. Stores them, unless
 * another process writes or the disk is full: then they are made again the next time.
 */
export function completeListings(
  { records, blobs }: Stored,
  batch: BatchKey,
  { most, unreadable }: ReadingOfRecords = { most: Number.POSITIVE_INFINITY, unreadable: new Map() },
): { made: Map<TrialKey, TrialListing>; left: ReadonlySet<TrialKey> } {
  const without = records
    .all(
      `SELECT trials.key, trials.result FROM trials JOIN runs ON runs.key = trials.run
       WHERE runs.batch = ? AND trials.result IS NOT NULL AND trials.listing ->> '$.verdict' IS NULL`,
      batch,
    )
    .map(({ key, result }) => ({ key: Number(key), sha256: String(result) }))
    .filter(({ sha256 }) => {
      const known = unreadable.get(sha256);
      return !known || known.putAt !== blobs.stat(sha256)?.putAt;
    });
  const made = without.slice(0, most).flatMap(({ key, sha256 }) => {
    const stored = blobs.stat(sha256);
    try {
      const record = readRecord(blobs.readClean(sha256), 'the record');
      return [{ key, recordBytes: stored?.byteSize ?? 0, listing: listingOf(record) }];
    } catch (error) {
      if (!(error instanceof OffsiteError || error instanceof SyntaxError)) throw error;
      unreadable.set(sha256, { why: messageOf(error), putAt: stored?.putAt });
      return [];
    }
  });
  if (made.length > 0)
    records.runIfPossible(
      `UPDATE trials SET ${setListing('made.listing', 'made.bytes')}
       FROM (SELECT value ->> 0 AS key, value ->> 1 AS listing, value ->> 2 AS bytes FROM json_each(?)) AS made
       WHERE trials.key = made.key`,
      JSON.stringify(
        made.map(({ key, listing, recordBytes }) => [key, JSON.stringify(listing), recordBytes]),
      ),
    );
  return {
    made: new Map(made.map(({ key, listing }) => [key, listing])),
    left: new Set(without.slice(most).map(({ key }) => key)),
  };
}
