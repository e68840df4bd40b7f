import type { BatchFacts } from '../record/batch-marks.ts';
import type { SuiteCommit } from '../record/suite-commit.ts';
import { foreignService } from './platform.ts';
import { type BatchKey, type Records, type RunKey, Table, type Value } from './records.ts';
import type { StartKey } from './starts.ts';
import { closeRun } from './trial-states.ts';

export type { BatchKey, RunKey, TrialKey } from './records.ts';

export interface StoredBatch {
  key: BatchKey;
  /** The service's name in the ledger. */
  service: string;
  id: string;
  /** Suite name, for people. */
  suite: string;
  file: string | undefined;
  /** The blob with the planned batch; without one the batch cannot be resumed. */
  plan: string | undefined;
  /** The name of the lock that a process holds while it works on the batch. */
  lock: string | undefined;
  state: 'open' | 'finished';
  /** Epoch milliseconds. */
  startedAt: number;
  /** Where the answers of its models come from. Undefined if that is not known. */
  answers: BatchFacts['answers'];
  isForeign: boolean;
  /** How many cases its suite has, if some are left out on purpose. */
  suiteCases: number | undefined;
  /** Of the repository that its suite is in. */
  commit: SuiteCommit | undefined;
}

export interface NewBatch
  extends Pick<StoredBatch, 'service' | 'id' | 'suite' | 'file'>,
    Partial<Pick<StoredBatch, 'plan' | 'lock' | 'answers' | 'suiteCases' | 'commit'>> {
  /** The start from which this batch comes. */
  start?: StartKey | undefined;
  runs: NewRun[];
}

type NewRun = Pick<StoredRun, 'id' | 'taskIndex' | 'caseId' | 'caseName' | 'variant'> &
  Partial<Pick<StoredRun, 'variantIndex'>>;

/** A run, wherever it comes from. */
export interface StoredRun {
  key: RunKey;
  batch: BatchKey;
  /** The service's id. */
  id: string;
  taskIndex: number;
  caseId: string;
  caseName: string;
  /** The planned variant's name; for a run that was found, the service's id of its variant. */
  variant: string;
  /** The variant's index in the batch's plan; undefined for a run that was found. */
  variantIndex: number | undefined;
  /**
   * The service's id of its variant; undefined until the run is pulled, and in runs that an older Offsite
   * pulled.
   */
  variantId: string | undefined;
  /** The blob with the pulled setup; undefined until the run is pulled. */
  setup: string | undefined;
}

export const runColumns = `runs.key, runs.batch, runs.id, runs.task_index, runs.case_id, runs.case_name, runs.variant,
  runs.variant_index, runs.variant_id, runs.setup`;

/** The SQL condition that a batch has planned trials without a result. */
export const isOpen = `batches.state = 'open' AND EXISTS (
  SELECT 1 FROM runs WHERE runs.batch = batches.key AND runs.state <> 'finished' AND runs.origin = 'planned')`;

/** The batches that this agent started, and their planned runs. */
export class Batches extends Table {
  /** Records a batch and its runs. */
  add(batch: NewBatch): { key: BatchKey; runs: Map<string, RunKey> } {
    const records = this.records;
    const { runs, commit, ...facts } = batch;
    return records.transaction(() => {
      const key = records.insert('batches', { ...facts, ...commitColumns(commit), startedAt: records.now() });
      if (batch.start !== undefined) records.become({ subject: 'start', key: batch.start, state: 'started' });
      records.note({ subject: 'batch', key, state: 'open' });
      return { key, runs: new Map(runs.map((run) => [run.id, this.#addRun(key, run)])) };
    });
  }

  /**
   * Records a batch of a fleet, and adds those of the given runs that the ledger does not have. The ledger
   * may already have other runs of the batch. Returns the keys of the batch and of the given runs.
   */
  join(batch: NewBatch): { key: BatchKey; runs: Map<string, RunKey> } {
    const records = this.records;
    return records.transaction(() => {
      const known = this.find(batch.id).find(({ service }) => service === batch.service);
      const key = known?.key ?? this.add({ ...batch, runs: [] }).key;
      // A run of it may have been found before its plan was known.
      if (known && known.plan === undefined) {
        const { plan = null, lock = null } = batch;
        records.run('UPDATE batches SET plan = ?, lock = ? WHERE key = ?', plan, lock, key);
      }
      const keyOf = (run: NewRun) =>
        findRun(records, batch.service, batch.id, run.id) ?? this.#addRun(key, run);
      return { key, runs: new Map(batch.runs.map((run) => [run.id, keyOf(run)])) };
    });
  }

  /** Whether the ledger has a batch of the service. */
  has(service: string, id: string): boolean {
    return this.records.get('SELECT 1 FROM batches WHERE service = ? AND id = ?', service, id) !== undefined;
  }

  /** The batches with an id; more than one if services use the same id. */
  find(id: string): StoredBatch[] {
    return storedBatches(this.records, 'WHERE id = ?', id);
  }

  /** The batch that a start led to. */
  ofStart(start: StartKey): StoredBatch | undefined {
    return storedBatches(this.records, 'WHERE start = ?', start)[0];
  }

  /** Throws if there is none. */
  byKey(key: BatchKey): StoredBatch {
    return batchByKey(this.records, key);
  }

  /** Batches with planned trials that have no result, oldest first. */
  open(): StoredBatch[] {
    return storedBatches(this.records, `WHERE ${isOpen} ORDER BY key`);
  }

  /** The planned runs of a batch; a run that was found and claimed has no plan. */
  runs(batch: BatchKey): (StoredRun & { variantIndex: number })[] {
    return this.records.select(
      `SELECT ${runColumns} FROM runs WHERE batch = ? AND origin = 'planned' ORDER BY task_index, key`,
      batch,
    );
  }

  /**
   * Closes a batch, or one run of it, whose trials nobody will run: its planned trials without a result are
   * withdrawn, and runs that were never pulled are finished. Its results stay, and so do runs that were
   * found. Returns how many trials were withdrawn.
   */
  close(batch: BatchKey, run?: RunKey): number {
    const records = this.records;
    return records.transaction(() => {
      const runs = records.all(
        `SELECT key FROM runs WHERE batch = ?1 AND (?2 IS NULL OR key = ?2) AND origin = 'planned'
           AND state <> 'finished'`,
        batch,
        run ?? null,
      );
      const counts = runs.map(({ key }) => closeRun(records, Number(key)));
      return counts.reduce((sum, count) => sum + count, 0);
    });
  }

  #addRun(batch: BatchKey, run: NewRun): RunKey {
    const { id, taskIndex, caseId, caseName, variant, variantIndex } = run;
    const row = { batch, id, taskIndex, caseId, caseName, variant, variantIndex, memory: 'null' };
    const key = this.records.insert('runs', row);
    this.records.note({ subject: 'run', key, state: 'started' });
    return key;
  }
}

/** @param which the SQL after the table: which batches, in which order */
export function storedBatches(records: Records, which: string, ...values: Value[]): StoredBatch[] {
  return records.select<BatchRow>(`SELECT * FROM batches ${which}`, ...values).map(batchOf);
}

/** Throws if there is none. */
export function batchByKey(records: Records, key: BatchKey): StoredBatch {
  const [batch] = storedBatches(records, 'WHERE key = ?', key);
  if (!batch) throw new Error(`the ledger has no batch with the key ${key}`);
  return batch;
}

/** A row of the table `batches`. */
export interface BatchRow extends Omit<StoredBatch, 'isForeign' | 'commit'> {
  start?: StartKey;
  commitId?: string;
  commitDirty?: number;
}

export function batchOf({ start: _, commitId: id, commitDirty: dirty, ...row }: BatchRow): StoredBatch {
  const commit = id === undefined ? undefined : { id, dirty: dirty === 1 };
  return { ...row, isForeign: row.service === foreignService, commit };
}

/** A commit as {@link batchOf} reads it. */
export function commitColumns(commit: SuiteCommit | undefined) {
  return { commitId: commit?.id, commitDirty: commit && Number(commit.dirty) };
}

export function findRun(
  records: Records,
  service: string,
  batchId: string,
  runId: string,
): RunKey | undefined {
  const key = records.value(
    `SELECT runs.key FROM runs JOIN batches ON batches.key = runs.batch
     WHERE batches.service = ? AND batches.id = ? AND runs.id = ?`,
    service,
    batchId,
    runId,
  );
  return key === undefined ? undefined : Number(key);
}
