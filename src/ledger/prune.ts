import { rm, stat } from 'node:fs/promises';
import type { BatchKey } from './batches.ts';
import type { BlobStore } from './blobs.ts';
import type { Ledger } from './ledger.ts';
import type { KnownRun } from './outbox.ts';
import type { Records } from './records.ts';
import { directReferences, hashesIn, storedResults } from './references.ts';
import { fromTrials } from './trial-rows.ts';

/**
 * Milliseconds for which a blob that nothing refers to is kept: a running trial may refer to it when it ends.
 */
const youngMs = 24 * 60 * 60_000;

export interface PruneOptions {
  /** Epoch milliseconds. Batches that ended before this time are removed. */
  before: number;
  now: number;
  /** Removes nothing, and only counts what would be removed. */
  dryRun: boolean;
  /** Services, by their names in the ledger, whose batches stay. */
  except?: readonly string[];
}

export interface Pruned {
  batches: number;
  trials: number;
  blobs: number;
  /** Bytes of the removed blobs. */
  byteSize: number;
  /** Blobs that stay because the ledger has no batch. */
  spared: number;
  /** Blobs that nothing refers to any more, and that are too young to be removed. */
  young: number;
  youngBytes: number;
}

/** Batches that ended before a time with every report delivered or dropped, except those of some services. */
const prunable = `
  SELECT batches.key FROM batches
  WHERE batches.service NOT IN (SELECT value FROM json_each(?2)) AND batches.state = 'finished'
    AND NOT EXISTS (
      SELECT 1 FROM runs JOIN trials ON trials.run = runs.key LEFT JOIN reports ON reports.trial = trials.key
      WHERE runs.batch = batches.key AND (trials.finished_at >= ?1 OR reports.state NOT IN ('delivered', 'superseded')))
    AND batches.started_at < ?1`;

/** The batches of a choice whose sets have parts that are not in the choice. A set is removed as a whole. */
const ofPartialSets = `
  SELECT batches.key FROM batches JOIN set_parts ON set_parts.start = batches.start
  WHERE batches.key IN (SELECT value FROM json_each(?1)) AND EXISTS (
    SELECT 1 FROM set_parts AS other LEFT JOIN batches AS others ON others.start = other.start
    WHERE other.of_set = set_parts.of_set
      AND (others.key IS NULL OR others.key NOT IN (SELECT value FROM json_each(?1))))`;

const ofBatches = (batches: string) => ({
  runs: `SELECT key FROM runs WHERE batch IN (${batches})`,
  trials: `SELECT trials.key FROM trials JOIN runs ON runs.key = trials.run WHERE runs.batch IN (${batches})`,
});

/**
 * Removes old batches whose trials are all finished and reported, and blobs that nothing refers to any more.
 * Batches with undelivered reports stay, however old they are. So do all blobs of a ledger that has no batch
 * at all: it may not be the one that they belong to.
 */
export async function pruneLedger(
  { records, blobs, workspaces }: Ledger,
  { before, now, dryRun, except = [] }: PruneOptions,
  signal: AbortSignal,
): Promise<Pruned> {
  const { blobs: stored, partials } = await blobs.list();
  const isEmpty = hasNoBatch(records);
  const batches = prunableBatches(records, before, except);
  const keys = JSON.stringify(batches);
  const chosen = 'SELECT value FROM json_each(?1)';
  const counted = records.get(`SELECT count(*) AS count FROM (${ofBatches(chosen).trials})`, keys);
  const pruned: Pruned = {
    batches: batches.length,
    trials: Number(counted?.count),
    blobs: 0,
    byteSize: 0,
    spared: isEmpty ? stored.size : 0,
    young: 0,
    youngBytes: 0,
  };
  const kept = keptBlobs(records, blobs, batches);
  if (!dryRun) removeBatches(records, batches, before);
  for (const sha256 of stored) {
    signal.throwIfAborted();
    const found = isEmpty || kept.has(sha256) ? undefined : blobs.stat(sha256);
    if (!found) continue;
    if (now - found.putAt < youngMs) {
      pruned.young++;
      pruned.youngBytes += found.byteSize;
      continue;
    }
    pruned.blobs++;
    pruned.byteSize += found.byteSize;
    if (!dryRun) await blobs.remove(sha256);
  }
  if (!dryRun) await removePartials(partials, now);
  if (!dryRun && !isEmpty) await workspaces.removeLost(now);
  return pruned;
}

/** Whether a ledger has never had a batch, or is another one than it was. One that was pruned had batches. */
export function hasNoBatch(records: Records): boolean {
  return (
    records.get(
      `SELECT 1 FROM batches UNION ALL SELECT 1 FROM starts
       UNION ALL SELECT 1 FROM changes WHERE subject = 'start' AND of = 0 AND state = 'pruned' LIMIT 1`,
    ) === undefined
  );
}

/** The runs with reports that a prune would remove, by the service's name in the ledger. */
export function prunableRuns({ records }: Ledger, before: number): Map<string, KnownRun[]> {
  const runs = records.select<KnownRun & { service: string }>(
    `SELECT DISTINCT runs.key, runs.id, runs.case_id, batches.service ${fromTrials}
     WHERE reports.state IS NOT NULL AND batches.key IN (SELECT value FROM json_each(?))`,
    JSON.stringify(prunableBatches(records, before)),
  );
  return Map.groupBy(runs, ({ service }) => service);
}

function prunableBatches(records: Records, before: number, except: readonly string[] = []): BatchKey[] {
  const keysOf = (rows: { key?: unknown }[]) => rows.map(({ key }) => Number(key));
  const batches = keysOf(records.all(prunable, Math.round(before), JSON.stringify(except)));
  const partial = new Set(keysOf(records.all(ofPartialSets, JSON.stringify(batches))));
  return batches.filter((key) => !partial.has(key));
}

function keptBlobs(records: Records, blobs: BlobStore, except: readonly BatchKey[]): Set<string> {
  const kept = new Set<string>();
  for (const { sha256 } of directReferences(records, except)) kept.add(sha256);
  for (const { sha256 } of storedResults(records, except))
    for (const mentioned of hashesIn(blobs.tryRead(sha256))) kept.add(mentioned);
  return kept;
}

function removeBatches(records: Records, batches: readonly BatchKey[], before: number): void {
  const keys = JSON.stringify(batches);
  const chosen = 'SELECT value FROM json_each(?1)';
  const { runs, trials } = ofBatches(chosen);
  const attempts = `SELECT key FROM attempts WHERE trial IN (${trials})`;
  const starts = `SELECT start FROM batches WHERE key IN (${chosen})`;
  records.transaction(() => {
    // It has the key of no start, so that no later prune removes it. It comes before changes are removed, so
    // that the key of the last one is not given to a later change: who knows that key would miss the change.
    if (batches.length > 0) records.note({ subject: 'start', key: 0, state: 'pruned' });
    const subjects = {
      report: trials,
      attempt: attempts,
      trial: trials,
      run: runs,
      batch: chosen,
      start: starts,
    };
    for (const [subject, of] of Object.entries(subjects))
      records.run(`DELETE FROM changes WHERE subject = '${subject}' AND of IN (${of})`, keys);
    records.run(`DELETE FROM crashes WHERE attempt IN (${attempts})`, keys);
    // Children first, because a row must not refer to a deleted row.
    for (const table of ['reports', 'attempts', 'gradings', 'workspaces', 'fleet_tasks'])
      records.run(`DELETE FROM ${table} WHERE trial IN (${trials})`, keys);
    records.run(`DELETE FROM trials WHERE run IN (${runs})`, keys);
    records.run(`DELETE FROM runs WHERE batch IN (${chosen})`, keys);
    const sets = `SELECT of_set FROM set_parts JOIN batches ON batches.start = set_parts.start
      WHERE batches.key IN (${chosen})`;
    const removed = records.all(sets, keys).map((row) => Number(row.of_set));
    records.run(`DELETE FROM set_parts WHERE of_set IN (${chosen})`, JSON.stringify(removed));
    records.run(`DELETE FROM sets WHERE key IN (${chosen})`, JSON.stringify(removed));
    records.run(`DELETE FROM batches WHERE key IN (${chosen})`, keys);
    records.run(
      `DELETE FROM starts WHERE state <> 'asking' AND asked_at < ?1
       AND NOT EXISTS (SELECT 1 FROM batches WHERE batches.start = starts.key)
       AND NOT EXISTS (SELECT 1 FROM set_parts WHERE set_parts.start = starts.key)`,
      Math.round(before),
    );
  });
}

async function removePartials(partials: readonly string[], now: number): Promise<void> {
  for (const file of partials) {
    const { mtimeMs } = await stat(file);
    if (now - mtimeMs >= youngMs) await rm(file, { force: true });
  }
}
