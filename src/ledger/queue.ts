import type { BatchKey, RunKey, StoredRun, TrialKey } from './batches.ts';
import { noteDeath } from './crashes.ts';
import { platformLock, platformService } from './platform.ts';
import { Table, type Value } from './records.ts';
import { fromRuns, type StoredTrial, storedTrials } from './trial-rows.ts';
import { finishAbove, queueTrials, reopen, takeBack } from './trial-states.ts';

/** A run as the service describes it, with the ordinals of its trials. */
export type PulledRun = Pick<StoredRun, 'key' | 'setup'> & {
  variantId?: string | undefined;
  ordinals: readonly number[];
};

/**
 * The lock that a daemon holds while it runs. It guards the batches that the daemon starts and the runs that
 * it finds.
 */
export const daemonLock = 'daemon';

/** The part of the queue that one worker runs. The worker's process holds the lock. */
export interface QueueScope {
  /** The service's name in the ledger. */
  service: string;
  lock: string;
  /** If set, only this batch. */
  batch?: BatchKey | undefined;
  /** If set, only the runs with which their batch was started. */
  origin?: 'planned' | undefined;
}

/** A run with queued trials. `batch` and `run` are the service's ids. */
export interface QueuedRun {
  batch: string;
  suite: string;
  run: string;
  case: string;
  trials: number;
}

/** What a worker leaves out when it asks for trials. */
export interface ExcludedTrials {
  trials?: Iterable<TrialKey>;
  runs?: Iterable<RunKey>;
  /** Names as {@link variantOf} returns them. */
  variants?: Iterable<string>;
}

/**
 * Why a trial without a result must not run: another agent has reported it (`elsewhere`), or a person has
 * canceled its run.
 */
export type Withdrawal = 'elsewhere' | 'canceled';

/**
 * A run that was found belongs to the daemon, or to the fleet that found it. All runs of platform batches
 * belong to the executor, no matter which process started the batch.
 */
const isInScope = `
  WHERE batches.service = ?1
    AND CASE WHEN batches.service = '${platformService}' THEN '${platformLock}'
      WHEN runs.origin = 'found' THEN coalesce(runs.lock, '${daemonLock}') ELSE batches.lock END = ?2
    AND (?3 IS NULL OR batches.key = ?3) AND (?4 IS NULL OR runs.origin = ?4)`;

const isWaiting = `${isInScope} AND trials.state = 'queued' AND trials.withdrawn IS NULL`;

/** The trials to run, of every batch and run in the ledger. */
export class Queue extends Table {
  /** Stores what the service says about runs, and queues their trials, in one transaction. */
  add(pulled: readonly PulledRun[]): void {
    const records = this.records;
    records.transaction(() => {
      for (const { key, setup, variantId, ordinals } of pulled) {
        if (setup !== undefined) records.run('UPDATE runs SET setup = ? WHERE key = ?', setup, key);
        if (variantId !== undefined)
          records.run('UPDATE runs SET variant_id = ? WHERE key = ?', variantId, key);
        queueTrials(records, key, ordinals);
      }
    });
  }

  /**
   * The next trials to run, oldest first.
   *
   * @param limit how many at most; all if it is negative
   */
  next(scope: QueueScope, limit: number, except: ExcludedTrials = {}): StoredTrial[] {
    const { trials = [], runs = [], variants = [] } = except;
    return storedTrials(
      this.records,
      // Chosen without their reports: SQLite would read those of all that are queued.
      `WHERE trials.key IN (SELECT trials.key ${fromRuns} ${isWaiting}
         AND trials.key NOT IN (SELECT value FROM json_each(?5))
         AND runs.key NOT IN (SELECT value FROM json_each(?6))
         AND json_array(batches.key, runs.variant, runs.variant_index)
           NOT IN (SELECT value FROM json_each(?7))
       ORDER BY trials.key LIMIT ?8) ORDER BY trials.key`,
      ...valuesOf(scope),
      JSON.stringify([...trials]),
      JSON.stringify([...runs]),
      JSON.stringify([...variants]),
      limit,
    );
  }

  /** How many trials are queued. */
  count(scope: QueueScope): number {
    return Number(this.records.value(`SELECT count(*) ${fromRuns} ${isWaiting}`, ...valuesOf(scope)));
  }

  /** Those of some trials that are queued. */
  stillQueued(scope: QueueScope, trials: readonly TrialKey[]): TrialKey[] {
    const keys = JSON.stringify(trials);
    return this.records
      .select<{ key: TrialKey }>(
        `SELECT trials.key ${fromRuns} ${isWaiting} AND trials.key IN (SELECT value FROM json_each(?5))`,
        ...valuesOf(scope),
        keys,
      )
      .map(({ key }) => key);
  }

  /** The first runs that have queued trials, and how many. */
  runs(scope: QueueScope, limit: number): QueuedRun[] {
    return this.records.select(
      `SELECT batches.id AS batch, batches.suite, runs.id AS run, runs.case_id AS "case", count(*) AS trials
         ${fromRuns} ${isWaiting}
       GROUP BY runs.key ORDER BY min(trials.key) LIMIT ?5`,
      ...valuesOf(scope),
      limit,
    );
  }

  /** The runs with trials that are queued or running, oldest first. */
  openRuns(scope: QueueScope): Pick<StoredTrial, 'batchId' | 'runId' | 'origin' | 'suite'>[] {
    return this.records.select(
      `SELECT batches.id AS batch_id, batches.suite, runs.id AS run_id, runs.origin ${fromRuns} ${isInScope}
         AND trials.state <> 'finished' AND trials.withdrawn IS NULL GROUP BY runs.key ORDER BY runs.key`,
      ...valuesOf(scope),
    );
  }

  /** The trials of a batch's planned runs, except unfinished ones that were withdrawn. */
  ofBatch(batch: BatchKey): StoredTrial[] {
    return storedTrials(
      this.records,
      `WHERE runs.batch = ? AND runs.origin = 'planned'
         AND (trials.state = 'finished' OR trials.withdrawn IS NULL)
       ORDER BY trials.key`,
      batch,
    );
  }

  /**
   * The trials of a run, by the service's id, that have no result; none if the scope does not have the run.
   */
  openTrials(scope: QueueScope, runId: string): StoredTrial[] {
    return storedTrials(
      this.records,
      `${isInScope} AND runs.id = ?5 AND trials.state <> 'finished'
         AND trials.withdrawn IS NULL`,
      ...valuesOf(scope),
      runId,
    );
  }

  /**
   * Removes trials from the queue for good. Their attempts stay in the ledger, and a running trial may still
   * finish.
   */
  withdraw(trials: readonly TrialKey[], why: Withdrawal): void {
    const records = this.records;
    records.transaction(() => {
      for (const trial of trials) {
        records.run('UPDATE trials SET withdrawn = coalesce(withdrawn, ?) WHERE key = ?', why, trial);
        records.note({ subject: 'trial', key: trial, state: 'withdrawn', detail: why });
        finishAbove(records, trial);
      }
    });
  }

  /**
   * The trials of a batch, or of one of its runs, that a person canceled and that have no result: of planned
   * runs, or of those that the daemon found.
   */
  canceled(batch: BatchKey, run?: RunKey, origin: StoredTrial['origin'] = 'planned'): StoredTrial[] {
    return storedTrials(
      this.records,
      `WHERE runs.batch = ?1 AND (?2 IS NULL OR runs.key = ?2) AND runs.origin = ?3 AND runs.lock IS NULL
         AND trials.withdrawn = 'canceled' AND trials.state = 'queued' ORDER BY trials.key`,
      batch,
      run ?? null,
      origin,
    );
  }

  /** Queues trials again that were withdrawn, and opens their batch. */
  takeBack(trials: readonly StoredTrial[], why: string): void {
    this.records.transaction(() => {
      for (const { key } of trials) takeBack(this.records, key, why);
      for (const run of new Set(trials.map((trial) => trial.run))) reopen(this.records, run);
    });
  }

  /** Ends the attempts of a process that died, and queues their trials again. Returns how many there were. */
  interrupt(scope: QueueScope): number {
    return this.#interrupt(scope, undefined);
  }

  /** Queues a trial again whose attempt could not be ended, for example because the disk was full. */
  putBack(scope: QueueScope, trial: TrialKey): void {
    this.#interrupt(scope, trial);
  }

  #interrupt(scope: QueueScope, trial: TrialKey | undefined): number {
    const records = this.records;
    const attempts = records.all(
      `SELECT attempts.key, attempts.trial FROM attempts WHERE attempts.ended_at IS NULL AND attempts.trial IN
         (SELECT trials.key ${fromRuns} ${isInScope} AND (?5 IS NULL OR trials.key = ?5))`,
      ...valuesOf(scope),
      trial ?? null,
    );
    if (attempts.length === 0) return 0;
    return records.transaction(() => {
      for (const { key, trial: of } of attempts) {
        // With `trial`, the attempt's process is alive: it calls this itself.
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
}

/** A unique name for a variant of a batch. All trials of a variant have the same model. */
export function variantOf({ batch, variant, variantIndex }: StoredTrial): string {
  return JSON.stringify([batch, variant, variantIndex ?? null]);
}

function valuesOf({ service, lock, batch, origin }: QueueScope): Value[] {
  return [service, lock, batch ?? null, origin ?? null];
}
