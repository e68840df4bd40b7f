import type { ListedAttempt } from '../record/attempt.ts';
import { type AttemptRow, attemptColumns, attemptOf, type ListedTrial, trialColumns } from './find.ts';
import type { BatchKey, Records, TrialKey } from './records.ts';

/** A trial with the batch that it belongs to; undefined if the ledger has none with the key. */
export function trialByKey(records: Records, key: TrialKey): (ListedTrial & { batch: BatchKey }) | undefined {
  const [trial] = records.select<ListedTrial & { batch: BatchKey }>(
    `SELECT ${trialColumns}, runs.batch FROM trials JOIN runs ON runs.key = trials.run WHERE trials.key = ?`,
    key,
  );
  return trial;
}

/** The last attempt of each trial of a batch. Its number is how many attempts the trial had. */
export function lastAttempts(records: Records, batch: BatchKey): Map<TrialKey, ListedAttempt> {
  // SQLite takes the other columns from the row with the maximum.
  const rows = records.select<AttemptRow & { trial: TrialKey }>(
    `SELECT ${attemptColumns}, attempts.trial, max(attempts.number) AS number FROM attempts
     JOIN trials ON trials.key = attempts.trial JOIN runs ON runs.key = trials.run
     WHERE runs.batch = ? GROUP BY attempts.trial`,
    batch,
  );
  return new Map(rows.map(({ trial, ...row }) => [trial, attemptOf(row)]));
}

/** The key of the journal's last change; 0 if there is none. */
export function lastChange(records: Records): number {
  return Number(records.get('SELECT max(key) AS key FROM changes')?.key ?? 0);
}

/**
 * What changed after a change in the journal: the trials, and the batches of these trials and of all other
 * changes.
 */
export function changedAfter(
  records: Records,
  change: number,
  limit: number,
): { last: number; trials: TrialKey[]; batches: BatchKey[] } {
  const rows = records.all(
    `WITH recent AS (SELECT key, subject, of FROM changes WHERE key > ? ORDER BY key LIMIT ?),
     named AS (
       SELECT recent.key,
         CASE subject WHEN 'attempt' THEN (SELECT trial FROM attempts WHERE attempts.key = of)
           WHEN 'trial' THEN of WHEN 'report' THEN of END AS trial,
         CASE subject WHEN 'run' THEN of END AS run,
         CASE subject WHEN 'batch' THEN of END AS batch
       FROM recent)
     SELECT named.key, named.trial, coalesce(named.batch, runs.batch) AS batch
     FROM named LEFT JOIN trials ON trials.key = named.trial
       LEFT JOIN runs ON runs.key = coalesce(named.run, trials.run)`,
    change,
    limit,
  );
  const keys = (name: string) => [
    ...new Set(rows.flatMap((row) => (row[name] === null ? [] : Number(row[name])))),
  ];
  return {
    last: Math.max(change, ...rows.map((row) => Number(row.key))),
    trials: keys('trial'),
    batches: keys('batch'),
  };
}
