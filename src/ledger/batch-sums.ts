import type { BatchKey, Records } from './records.ts';

/** The SQL condition that only the service had the result of a trial. It shows no times. */
const isTaken = "trials.state = 'finished' AND trials.withdrawn IS 'elsewhere' AND reports.trial IS NULL";

/** The SQL condition that somebody gave up reporting a result. */
const isDropped = "trials.state = 'finished' AND trials.withdrawn IS NULL AND reports.trial IS NULL";

/** What is counted and added up over the trials of a batch: the columns of `batch_sums`, and their SQL. */
const sums = {
  passed: counted('passed'),
  failed: counted('failed'),
  void: counted('void'),
  unfinished: "count(*) FILTER (WHERE trials.state <> 'finished' AND trials.withdrawn IS NULL)",
  canceled: "count(*) FILTER (WHERE trials.state <> 'finished' AND trials.withdrawn = 'canceled')",
  elsewhere: "count(*) FILTER (WHERE trials.state <> 'finished' AND trials.withdrawn = 'elsewhere')",
  found: "count(runs.key) FILTER (WHERE runs.origin = 'found')",
  from_service: `count(*) FILTER (WHERE ${isTaken})`,
  superseded: "count(*) FILTER (WHERE reports.state = 'superseded')",
  unreported: "count(*) FILTER (WHERE reports.state IN ('queued', 'sent', 'parked'))",
  dropped: `count(*) FILTER (WHERE ${isDropped})`,
  cases: 'count(DISTINCT runs.case_id)',
  unlisted: "count(*) FILTER (WHERE trials.state = 'finished' AND trials.duration_ms IS NULL)",
  duration_ms: 'coalesce(sum(trials.duration_ms), 0)',
  tokens: knownSum('tokens'),
  cost_usd: knownSum('cost_usd'),
  last_at: `max(trials.finished_at) FILTER (WHERE NOT (${isTaken}))`,
  is_steady: `count(*) FILTER (WHERE trials.state = 'finished' AND NOT (${isTaken})) = count(trials.steady_clock)
    AND count(DISTINCT trials.steady_clock) = 1`,
  steady_ms: 'max(trials.steady_to) - min(trials.steady_from)',
};

/** The columns of a batch's sums, after those of its row. */
export const sumColumns = Object.keys(sums).map((name) => `sums.${name}`);

/** SQL for the sums of the batches that `choice` selects the keys of, stored or not. */
export function sumsOf(choice: string): string {
  return `SELECT ${['batch', ...Object.keys(sums)].join(', ')} FROM batch_sums WHERE batch IN (${choice})
    UNION ALL ${addedUp(`${choice} EXCEPT SELECT batch FROM batch_sums`)}`;
}

/**
 * Stores the sums of ended batches, so that a list does not read all their trials again. Triggers remove them
 * when a trial changes. They may also be missing: while another process writes, or if the disk is full.
 */
export function storeSums(records: Records, batches: readonly BatchKey[]): void {
  if (batches.length === 0) return;
  // Read and stored in one statement: no change of a trial can come between.
  records.runIfPossible(
    `INSERT OR IGNORE INTO batch_sums (${['batch', ...Object.keys(sums)].join(', ')})
     ${addedUp('SELECT value FROM json_each(?)')}`,
    JSON.stringify(batches),
  );
}

function addedUp(choice: string): string {
  const columns = Object.entries(sums).map(([name, sql]) => `${sql} AS ${name}`);
  return `SELECT batches.key AS batch, ${columns.join(',\n')}
    FROM batches LEFT JOIN runs ON runs.batch = batches.key LEFT JOIN trials ON trials.run = runs.key
      LEFT JOIN reports ON reports.trial = trials.key
    WHERE batches.key IN (${choice}) GROUP BY batches.key`;
}

function counted(verdict: string): string {
  return `count(*) FILTER (WHERE trials.verdict = '${verdict}' AND reports.state IS NOT 'superseded')`;
}

/** The sum of a column of finished trials; null if it is not known for each. */
function knownSum(column: string): string {
  return `CASE WHEN count(trials.${column}) = count(trials.duration_ms)
    THEN coalesce(sum(trials.${column}), 0) END`;
}
