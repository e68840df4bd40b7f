import { fingerprintKey } from './fingerprints.ts';
import type { Records, RunKey, TrialKey } from './records.ts';
import { finishAbove, type TrialState } from './trial-states.ts';
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

/** Where a trial of this ledger stands. */
export interface TrialStanding {
  key: TrialKey;
  state: TrialState;
  /** The state of its report; undefined without one. */
  report: 'queued' | 'delivered' | 'parked' | undefined;
}

/** The tasks of a fleet that trials of this ledger were taken for. */
export class FleetTasks {
  readonly #records: Records;

  constructor(records: Records) {
    this.#records = records;
  }

  /** Undefined if the ledger does not have the trial. */
  standing(run: RunKey, ordinal: number): TrialStanding | undefined {
    const [standing] = this.#records.select<TrialStanding>(
      `SELECT trials.key, trials.state, reports.state AS report
       FROM trials LEFT JOIN reports ON reports.trial = trials.key AND reports.state <> 'superseded'
       WHERE trials.run = ? AND trials.ordinal = ?`,
      run,
      ordinal,
    );
    return standing;
  }

  /** The key of a trial, by the service's ids; undefined if the ledger does not have it. */
  find(service: string, trial: { batch: string; run: string; ordinal: number }): TrialKey | undefined {
    const row = this.#records.get(
      `SELECT trials.key FROM trials JOIN runs ON runs.key = trials.run
         JOIN batches ON batches.key = runs.batch
       WHERE batches.service = ? AND batches.id = ? AND runs.id = ? AND trials.ordinal = ?`,
      service,
      trial.batch,
      trial.run,
      trial.ordinal,
    );
    return row && Number(row.key);
  }

  /** Whether a trial has no result here. */
  isOpen(trial: TrialKey): boolean {
    const row = this.#records.get('SELECT state FROM trials WHERE key = ?', trial);
    return row !== undefined && row.state !== 'finished';
  }

  /** Notes the newest task of a trial. */
  put(trial: TrialKey, { token, workflow, workflowRun }: Omit<FleetTask, 'isAccepted'>): void {
    this.#records.transaction(() => {
      this.#records.run(
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
    const [row] = this.#records.select<Kept>('SELECT * FROM fleet_tasks WHERE trial = ?', trial);
    if (!row) return undefined;
    const { token, workflow, workflowRun, accepted } = row;
    return { token: Buffer.from(token, 'base64'), workflow, workflowRun, isAccepted: accepted === 1 };
  }

  /** The hash of a finished trial's record. */
  resultOf(trial: TrialKey): string {
    const row = this.#records.get('SELECT result FROM trials WHERE key = ?', trial);
    if (typeof row?.result !== 'string') throw new Error(`trial ${trial} has no result`);
    return row.result;
  }

  accept(trial: TrialKey): void {
    this.#records.transaction(() => {
      this.#records.run('UPDATE fleet_tasks SET accepted = 1 WHERE trial = ?', trial);
    });
  }

  /** The trials of a fleet that are queued here. When a worker starts, it has no task for any of them. */
  queued(service: string): TrialKey[] {
    return this.#records
      .all(
        `SELECT trials.key FROM trials JOIN runs ON runs.key = trials.run
           JOIN batches ON batches.key = runs.batch
         WHERE batches.service = ?
           AND '${fleetLock}' = CASE WHEN runs.origin = 'planned' THEN batches.lock ELSE runs.lock END
           AND trials.state = 'queued' AND trials.withdrawn IS NULL`,
        service,
      )
      .map(({ key }) => Number(key));
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
    const records = this.#records;
    const known = this.standing(run, ordinal);
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
      const key = Number(this.standing(run, ordinal)?.key);
      records.note({ subject: 'trial', key, state: 'finished', detail: verdict });
      finishAbove(records, key);
    });
    return true;
  }
}
