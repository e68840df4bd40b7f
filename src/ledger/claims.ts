import type { BatchKey, RunKey, TrialKey } from './batches.ts';
import { noteDeath } from './crashes.ts';
import { finishAbove } from './finish-above.ts';
import type { Records, Row } from './records.ts';

/** The lock that a daemon holds all its life. A batch that names it is the daemon's. */
export const daemonLock = 'daemon';

/** A run that somebody else started and this agent found by listing. */
export interface FoundRun {
  /** The service's name in the ledger. */
  service: string;
  batchId: string;
  /** Suite name, for people. */
  suite: string;
  id: string;
  caseId: string;
  caseName: string;
  /** For people. */
  variant: string;
  /** What is to be remembered of the record besides its setup. Kept as JSON. */
  memory: unknown;
  /** The blob with the run's setup. */
  setup: string | undefined;
  /** Of the trials that are to be run. */
  ordinals: readonly number[];
}

/** A trial that is the daemon's to run, with what is known of its run. */
export interface ClaimedTrial {
  key: TrialKey;
  ordinal: number;
  run: RunKey;
  runId: string;
  caseId: string;
  caseName: string;
  variant: string;
  memory: unknown;
  setup: string | undefined;
  batch: BatchKey;
  batchId: string;
  /** `found` by listing, or of a batch that this agent `started`. */
  origin: 'found' | 'started';
}

/** Why a trial is not run although it has no result here: another agent has reported it, or a person has canceled its run. */
export type Withdrawal = 'elsewhere' | 'canceled';

const ours = `
  FROM trials JOIN runs ON runs.key = trials.run JOIN batches ON batches.key = runs.batch
  LEFT JOIN claims ON claims.run = runs.key
  WHERE batches.service = ?1 AND (claims.run IS NOT NULL OR batches.lock = '${daemonLock}')`;

const open = `${ours} AND trials.state = 'queued'
  AND NOT EXISTS (SELECT 1 FROM withdrawals WHERE withdrawals.trial = trials.key)`;

/** The runs that a daemon works on: those that it found and claimed, and those of batches it started itself. */
export class Claims {
  readonly #records: Records;

  constructor(records: Records) {
    this.#records = records;
  }

  /** Claims a run with its trials. False where it is in the ledger already, whoever's it is. */
  claim(run: FoundRun): boolean {
    const records = this.#records;
    return records.transaction(() => {
      if (this.find(run.service, run.batchId, run.id) !== undefined) return false;
      const key = this.#addRun(this.#batchOf(run), run);
      for (const ordinal of run.ordinals) {
        const trial = records.run(
          "INSERT INTO trials (run, ordinal, state) VALUES (?, ?, 'queued')",
          key,
          ordinal,
        );
        records.note({ subject: 'trial', key: trial, state: 'queued' });
      }
      return true;
    });
  }

  /** The key of a run of the service, where the ledger has it. */
  find(service: string, batchId: string, runId: string): RunKey | undefined {
    const row = this.#records.get(
      `SELECT runs.key FROM runs JOIN batches ON batches.key = runs.batch
       WHERE batches.service = ? AND batches.id = ? AND runs.id = ?`,
      service,
      batchId,
      runId,
    );
    return row && Number(row.key);
  }

  /** Trials to be run, oldest first, but for those and the runs that are named. */
  next(
    service: string,
    {
      except,
      exceptRuns,
      limit,
    }: { except: Iterable<TrialKey>; exceptRuns: Iterable<RunKey>; limit: number },
  ): ClaimedTrial[] {
    const rows = this.#records.all(
      `SELECT trials.key, trials.ordinal, runs.key AS run, runs.id AS run_id, runs.case_id, runs.case_name,
         runs.variant, runs.memory, runs.setup, batches.key AS batch, batches.id AS batch_id,
         claims.run IS NOT NULL AS found ${open}
         AND trials.key NOT IN (SELECT value FROM json_each(?2))
         AND runs.key NOT IN (SELECT value FROM json_each(?3))
       ORDER BY trials.key LIMIT ?4`,
      service,
      JSON.stringify([...except]),
      JSON.stringify([...exceptRuns]),
      limit,
    );
    return rows.map(claimedTrial);
  }

  /** How many trials wait to be run; of one batch where one is named. */
  count(service: string, batch?: BatchKey): number {
    const row = this.#records.get(
      `SELECT count(*) AS count ${open} AND (?2 IS NULL OR batches.key = ?2)`,
      service,
      batch ?? null,
    );
    return Number(row?.count ?? 0);
  }

  /** The daemon's trials of a run, named by the service's id, that have no result; none where there is no such run. */
  openTrials(service: string, runId: string): { key: TrialKey; ordinal: number }[] {
    return this.#records
      .all(
        `SELECT trials.key, trials.ordinal ${ours} AND runs.id = ?2 AND trials.state <> 'finished'
           AND NOT EXISTS (SELECT 1 FROM withdrawals WHERE withdrawals.trial = trials.key)`,
        service,
        runId,
      )
      .map(({ key, ordinal }) => ({ key: Number(key), ordinal: Number(ordinal) }));
  }

  /** Takes trials out of the queue for good. What one of them has found already stays, and one that runs may still finish. */
  withdraw(trials: readonly TrialKey[], why: Withdrawal): void {
    const records = this.#records;
    records.transaction(() => {
      for (const trial of trials) {
        records.run('INSERT OR IGNORE INTO withdrawals (trial, why) VALUES (?, ?)', trial, why);
        records.note({ subject: 'trial', key: trial, state: 'withdrawn', detail: why });
        finishAbove(records, trial);
      }
    });
  }

  /** Ends attempts that nobody is at any more: all of the daemon's, as its process died, or one trial's. Returns how many there were. */
  interrupt(service: string, trial?: TrialKey): number {
    const records = this.#records;
    return records.transaction(() => {
      const attempts = records.all(
        `SELECT attempts.key, attempts.trial FROM attempts WHERE attempts.ended_at IS NULL AND attempts.trial IN
           (SELECT trials.key ${ours} AND (?2 IS NULL OR trials.key = ?2))`,
        service,
        trial ?? null,
      );
      for (const { key, trial: of } of attempts) {
        // One that is named was put back by the process that lives.
        if (trial === undefined) noteDeath(records, Number(key));
        records.run(
          "UPDATE attempts SET ended_at = ?, ending = 'interrupted' WHERE key = ?",
          records.now(),
          Number(key),
        );
        records.note({ subject: 'attempt', key: Number(key), state: 'interrupted' });
        records.run("UPDATE trials SET state = 'queued' WHERE key = ? AND state = 'running'", Number(of));
        records.note({ subject: 'trial', key: Number(of), state: 'queued' });
      }
      return attempts.length;
    });
  }

  /** The run's batch: one that is known, be it somebody else's (a cell of it was rerun), or a new one. */
  #batchOf({ service, batchId, suite }: FoundRun): BatchKey {
    const records = this.#records;
    const known = records.get('SELECT key FROM batches WHERE service = ? AND id = ?', service, batchId);
    const key = known
      ? Number(known.key)
      : records.run(
          'INSERT INTO batches (service, id, suite, started_at) VALUES (?, ?, ?, ?)',
          service,
          batchId,
          suite,
          records.now(),
        );
    records.run("UPDATE batches SET state = 'open' WHERE key = ?", key);
    records.note({ subject: 'batch', key, state: 'open', detail: 'a run of it was claimed' });
    return key;
  }

  #addRun(batch: BatchKey, run: FoundRun): RunKey {
    const records = this.#records;
    const key = records.run(
      'INSERT INTO runs (batch, id, task_index, case_id, case_name, variant, memory, setup) VALUES (?, ?, 0, ?, ?, ?, ?, ?)',
      batch,
      run.id,
      run.caseId,
      run.caseName,
      run.variant,
      JSON.stringify(run.memory),
      run.setup ?? null,
    );
    records.run('INSERT INTO claims (run) VALUES (?)', key);
    records.note({ subject: 'run', key, state: 'started', detail: 'claimed' });
    return key;
  }
}

function claimedTrial(row: Row): ClaimedTrial {
  return {
    key: Number(row.key),
    ordinal: Number(row.ordinal),
    run: Number(row.run),
    runId: String(row.run_id),
    caseId: String(row.case_id),
    caseName: String(row.case_name),
    variant: String(row.variant),
    memory: JSON.parse(String(row.memory)),
    setup: row.setup === null ? undefined : String(row.setup),
    batch: Number(row.batch),
    batchId: String(row.batch_id),
    origin: row.found === 1 ? 'found' : 'started',
  };
}
