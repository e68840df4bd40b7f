import type { Records, RunKey, TrialKey } from './records.ts';

/**
 * Finishes a trial's run if the trial was its last open one, and the batch if the run was its last open one.
 * Call it in the transaction that ends the trial.
 */
export function finishAbove(records: Records, trial: TrialKey): void {
  const run = Number(records.get('SELECT run FROM trials WHERE key = ?', trial)?.run);
  const openTrial = `SELECT 1 FROM trials WHERE run = ? AND state <> 'finished'
    AND withdrawn IS NULL`;
  if (records.get(openTrial, run)) return;
  records.run("UPDATE runs SET state = 'finished' WHERE key = ?", run);
  records.note({ subject: 'run', key: run, state: 'finished' });
  const batch = Number(records.get('SELECT batch FROM runs WHERE key = ?', run)?.batch);
  if (records.get("SELECT 1 FROM runs WHERE batch = ? AND state <> 'finished'", batch)) return;
  records.run("UPDATE batches SET state = 'finished' WHERE key = ?", batch);
  records.note({ subject: 'batch', key: batch, state: 'finished' });
}

/**
 * Inserts a run's trials, except those that it has already: a run whose setup the service did not give is
 * pulled again. Call it in the transaction that adds the run.
 */
export function queueTrials(records: Records, run: RunKey, ordinals: readonly number[]): void {
  for (const ordinal of ordinals) {
    if (records.get('SELECT 1 FROM trials WHERE run = ? AND ordinal = ?', run, ordinal)) continue;
    const key = records.run("INSERT INTO trials (run, ordinal, state) VALUES (?, ?, 'queued')", run, ordinal);
    records.note({ subject: 'trial', key, state: 'queued' });
  }
}
