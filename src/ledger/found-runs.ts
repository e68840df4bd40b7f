import { findRun, type StoredRun } from './batches.ts';
import { type BatchKey, type RunKey, Table } from './records.ts';
import { leftElsewhere, queueTrials, reopen, takeBack } from './trial-states.ts';

/** A run that somebody else queued and this process found by listing. */
export interface FoundRun extends Pick<StoredRun, 'id' | 'caseId' | 'caseName' | 'variant' | 'setup'> {
  /** The service's name in the ledger. */
  service: string;
  batchId: string;
  /** Suite name, for people. */
  suite: string;
  /** Its place in its batch, if that is known. */
  taskIndex?: number | undefined;
  /** What to keep of the record besides its setup. Stored as JSON, in the column `memory`. */
  details: unknown;
  /** The ordinals of the trials to run. */
  ordinals: readonly number[];
  /** The lock of who works on it; the daemon's if undefined. */
  lock?: string | undefined;
}

/** The runs that others queued and this process found, and adopted into its ledger. */
export class FoundRuns extends Table {
  /** The key of a run of the service, found or planned, if the ledger has it. */
  find(service: string, batchId: string, runId: string): RunKey | undefined {
    return findRun(this.records, service, batchId, runId);
  }

  /** Who works on a run that was found; undefined for the daemon, and for planned runs. */
  lockOf(run: RunKey): string | undefined {
    return this.records.value('SELECT lock FROM runs WHERE key = ?', run) as string | undefined;
  }

  /**
   * Adds a run that was found, and queues its trials. Returns false if the ledger already has the run, no
   * matter which process works on it.
   */
  adopt(run: FoundRun): boolean {
    const records = this.records;
    return records.transaction(() => {
      if (this.find(run.service, run.batchId, run.id) !== undefined) return false;
      queueTrials(records, this.#addFoundRun(this.#batchOf(run), run), run.ordinals);
      return true;
    });
  }

  /**
   * Queues trials that the service lists as queued, of a run that the daemon found: those that another agent
   * had when the run was found, and those that were left to another agent since. Does not change other
   * trials, planned runs, and runs of a fleet. Returns whether there were any.
   */
  adoptMore(run: RunKey, ordinals: readonly number[]): boolean {
    const records = this.records;
    const isOfDaemon = "SELECT 1 FROM runs WHERE key = ? AND origin = 'found' AND lock IS NULL";
    return records.get(isOfDaemon, run) !== undefined && this.adoptOpen(run, ordinals);
  }

  /**
   * Does the same as {@link adoptMore} for any run. Only for a service whose runs all have one lock, which
   * the caller holds.
   */
  adoptOpen(run: RunKey, ordinals: readonly number[]): boolean {
    const records = this.records;
    const known = new Set(
      records.all('SELECT ordinal FROM trials WHERE run = ?', run).map(({ ordinal }) => Number(ordinal)),
    );
    const missing = ordinals.filter((ordinal) => !known.has(ordinal));
    const back = leftElsewhere(records, run, ordinals);
    if (missing.length + back.length === 0) return false;
    records.transaction(() => {
      for (const trial of back) takeBack(records, trial);
      queueTrials(records, run, missing);
      reopen(records, run);
    });
    return true;
  }

  /**
   * The run's batch: one that the ledger has, even if another process started it (somebody reran one of its
   * cells), or a new one.
   */
  #batchOf({ service, batchId, suite }: FoundRun): BatchKey {
    const records = this.records;
    const known = records.get('SELECT key FROM batches WHERE service = ? AND id = ?', service, batchId);
    const key = known
      ? Number(known.key)
      : records.insert('batches', { service, id: batchId, suite, startedAt: records.now() });
    records.become({ subject: 'batch', key, state: 'open', detail: 'a run of it was found' });
    return key;
  }

  #addFoundRun(batch: BatchKey, run: FoundRun): RunKey {
    const { id, caseId, caseName, taskIndex = 0, variant, details, setup, lock } = run;
    const key = this.records.insert('runs', {
      batch,
      id,
      caseId,
      caseName,
      taskIndex,
      variant,
      variantId: variant,
      setup,
      lock,
      memory: JSON.stringify(details),
      origin: 'found',
    });
    this.records.note({ subject: 'run', key, state: 'started', detail: 'found' });
    return key;
  }
}
