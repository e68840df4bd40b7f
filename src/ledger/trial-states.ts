import type { BatchKey, Records, RunKey, TrialKey } from './records.ts';

export type TrialState = 'queued' | 'running' | 'finished';

const openOf = "FROM trials WHERE run = ? AND state <> 'finished' AND withdrawn IS NULL";

/**
 * Finishes a trial's run if the trial was its last open one, and the batch if the run was its last open one.
 * Call it in the transaction that ends the trial.
 */
export function finishAbove(records: Records, trial: TrialKey): void {
  const run = Number(records.value('SELECT run FROM trials WHERE key = ?', trial));
  if (records.get(`SELECT 1 ${openOf}`, run) === undefined) finishRun(records, run);
}

/**
 * Withdraws the open trials of a run, and finishes it. Returns how many trials there were. Call it in a
 * transaction.
 */
export function closeRun(records: Records, run: RunKey): number {
  const open = records.all(`SELECT key ${openOf}`, run);
  for (const { key } of open) {
    records.run("UPDATE trials SET withdrawn = 'canceled' WHERE key = ?", Number(key));
    records.note({ subject: 'trial', key: Number(key), state: 'withdrawn', detail: 'canceled' });
  }
  finishRun(records, run);
  return open.length;
}

/** Finishes a run, and its batch if the run was its last open one. */
function finishRun(records: Records, run: RunKey): void {
  records.become({ subject: 'run', key: run, state: 'finished' });
  const batch = batchOfRun(records, run);
  if (records.get("SELECT 1 FROM runs WHERE batch = ? AND state <> 'finished'", batch)) return;
  records.become({ subject: 'batch', key: batch, state: 'finished' });
}

/**
 * Inserts a run's trials, except those that it has already: a run whose setup the service did not give is
 * pulled again. Call it in the transaction that adds the run.
 */
export function queueTrials(records: Records, run: RunKey, ordinals: readonly number[]): void {
  for (const ordinal of ordinals) {
    if (records.get('SELECT 1 FROM trials WHERE run = ? AND ordinal = ?', run, ordinal)) continue;
    const key = records.insert('trials', { run, ordinal, state: 'queued' });
    records.note({ subject: 'trial', key, state: 'queued' });
  }
}

/**
 * The trials of these ordinals that were left to another Offsite process, and have no result of this one.
 */
export function leftElsewhere(records: Records, run: RunKey, ordinals: readonly number[]): TrialKey[] {
  return records
    .all(
      `SELECT key FROM trials WHERE run = ? AND withdrawn = 'elsewhere' AND state <> 'running'
         AND ordinal IN (SELECT value FROM json_each(?))
         AND NOT EXISTS (SELECT 1 FROM reports WHERE reports.trial = trials.key)`,
      run,
      JSON.stringify(ordinals),
    )
    .map(({ key }) => Number(key));
}

/** Queues a trial again that was withdrawn. Call it in a transaction. */
export function takeBack(records: Records, trial: TrialKey, detail = 'another agent gave it back'): void {
  records.run(
    `UPDATE trials SET state = 'queued', withdrawn = NULL, verdict = NULL, result = NULL, finished_at = NULL,
       listing = NULL, record_bytes = NULL, duration_ms = NULL, tokens = NULL, cost_usd = NULL,
       steady_clock = NULL, steady_from = NULL, steady_to = NULL
     WHERE key = ?`,
    trial,
  );
  records.note({ subject: 'trial', key: trial, state: 'queued', detail });
}

/** Opens a run and its batch again, because the run has open trials again. Call it in a transaction. */
export function reopen(records: Records, run: RunKey): void {
  const detail = 'trials of it came back';
  records.become({ subject: 'run', key: run, state: 'started', detail });
  records.become({ subject: 'batch', key: batchOfRun(records, run), state: 'open', detail });
}

function batchOfRun(records: Records, run: RunKey): BatchKey {
  return Number(records.value('SELECT batch FROM runs WHERE key = ?', run));
}
