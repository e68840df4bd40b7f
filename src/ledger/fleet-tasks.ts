import { fingerprintKey } from './fingerprints.ts';
import { type RunKey, Table, type TrialKey } from './records.ts';
import { trialByKey, trialOf } from './trial-rows.ts';
import { finishAbove } from './trial-states.ts';
import type { FinishedTrial } from './trials.ts';

/** The name of the lock that a worker of a fleet holds. All batches that a fleet runs have this lock. */
export const fleetLock = 'fleet';

/** The task that a trial was taken for. */
export interface FleetTask {
  token: Uint8Array;
  /** The workflow that gave the task; undefined for the workflow of the batch. */
  workflow: string | undefined;
  /** The run of the workflow, by Temporal's id. */
  workflowRun: string;
  /** Whether Temporal has accepted the trial's result. */
  isAccepted: boolean;
}

/** The tasks of a fleet that trials of this ledger were taken for. */
export class FleetTasks extends Table {
  /** Whether a trial has no result here. */
  isOpen(trial: TrialKey): boolean {
    const known = trialByKey(this.records, trial);
    return known !== undefined && known.state !== 'finished';
  }

  /** Notes the newest task of a trial. */
  put(trial: TrialKey, { token, workflow, workflowRun }: Omit<FleetTask, 'isAccepted'>): void {
    this.records.transaction(() => {
      this.records.run(
        `INSERT INTO fleet_tasks (trial, token, workflow, workflow_run) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (trial) DO UPDATE SET token = ?2, workflow = ?3, workflow_run = ?4, accepted = 0`,
        trial,
        Buffer.from(token).toString('base64'),
        workflow ?? null,
        workflowRun,
      );
    });
  }

  /** Undefined for a trial that was not taken from a fleet. */
  of(trial: TrialKey): FleetTask | undefined {
    type Kept = Pick<FleetTask, 'workflow' | 'workflowRun'> & { token: string; accepted: number };
    const [row] = this.records.select<Kept>('SELECT * FROM fleet_tasks WHERE trial = ?', trial);
    if (!row) return undefined;
    const { token, workflow, workflowRun, accepted } = row;
    return { token: Buffer.from(token, 'base64'), workflow, workflowRun, isAccepted: accepted === 1 };
  }

  accept(trial: TrialKey): void {
    this.records.transaction(() => {
      this.records.run('UPDATE fleet_tasks SET accepted = 1 WHERE trial = ?', trial);
    });
  }

  /**
   * Keeps the result of a trial that another machine has run and reported. Returns false if this ledger has a
   * result, or runs the trial itself.
   *
   * @param result the blob with the record
   */
  adopt(
    run: RunKey,
    ordinal: number,
    { verdict, result, fingerprint }: Pick<FinishedTrial, 'verdict' | 'fingerprint'> & { result: string },
  ): boolean {
    const records = this.records;
    const known = trialOf(records, run, ordinal);
    if (known && known.state !== 'queued') return false;
    records.transaction(() => {
      records.run(
        `INSERT INTO trials (run, ordinal, state, verdict, result, finished_at, fingerprint)
           VALUES (?1, ?2, 'finished', ?3, ?4, ?5, ?6)
         ON CONFLICT (run, ordinal) DO UPDATE
           SET state = 'finished', withdrawn = NULL, verdict = ?3, result = ?4, finished_at = ?5,
             fingerprint = ?6`,
        run,
        ordinal,
        verdict,
        result,
        records.now(),
        fingerprintKey(records, fingerprint),
      );
      const key = Number(trialOf(records, run, ordinal)?.key);
      records.note({ subject: 'trial', key, state: 'finished', detail: verdict });
      finishAbove(records, key);
    });
    return true;
  }
}
