import type { DatabaseSync } from 'node:sqlite';
import type { Case, Suite } from '../../contract/definition.ts';
import { claimLimits } from '../../contract/operations.ts';
import { inCode } from '../../ledger/records.ts';
import { pieceSizes } from '../json-response.ts';
import type { EndedTrial } from '../record/costs.ts';

/** A run with the texts that form its record. Times are epoch milliseconds; `...Json` are JSON texts. */
export interface RunRow {
  key: number;
  id: string;
  batchId: string;
  caseJson: string;
  suiteJson: string;
  variantJson: string;
  /** The keys of its suite and its case, which are read on their own. */
  batch: number;
  batchCase: number;
  triggerJson?: string;
  definitionHash: string;
  local: boolean;
  trials: number;
  startedAt: number;
}

/** What recording a trial's report needs. */
export interface ReportedRun {
  key: number;
  id: string;
  case: { id: string; name: string };
  local: boolean;
  trials: number;
}

/** Reads runs, always of one organization. */
export function createRunStore(database: DatabaseSync) {
  const read = database.prepare(
    `SELECT runs.key, runs.id, runs.variant AS variant_json, runs.definition_hash, runs.local, runs.trials,
       runs.started_at, runs.batch, runs.batch_case, batches.id AS batch_id, batches.suite_name AS suite_json,
       batches.trigger AS trigger_json, batch_cases.case_name AS case_json
     FROM runs JOIN batches ON batches.key = runs.batch JOIN batch_cases ON batch_cases.key = runs.batch_case
     WHERE runs.key = ?`,
  );
  const reportedColumns = `SELECT runs.key, runs.id, runs.local, runs.trials, batch_cases.case_name
     FROM runs JOIN batch_cases ON batch_cases.key = runs.batch_case`;
  const byRun = database.prepare(`${reportedColumns} WHERE runs.id = ? AND runs.organization = ?`);
  const byBatch = database.prepare(
    `${reportedColumns} JOIN batches ON batches.key = runs.batch
     WHERE batches.id = ? AND runs.organization = ? AND runs.task_index = ?`,
  );

  return {
    page: createRunPages(database),
    /** As they were sent: a run's setup follows from them. They may be long. */
    definitions: readsDefinitions(database),
    read(key: number): RunRow {
      const row = read.get(key);
      if (!row) throw new Error(`run ${key} is listed but not there`);
      return { ...inCode<RunRow>(row), local: row.local === 1 };
    },
    /** A run by its own id. */
    find(organization: number, id: string): ReportedRun | undefined {
      const row = byRun.get(id, organization);
      return row && reportedRun(row);
    },
    /** A run by its own id, or by its batch's id and its index in the batch. */
    findReported(organization: number, id: string, taskIndex: number): ReportedRun | undefined {
      const row = byRun.get(id, organization) ?? byBatch.get(id, organization, taskIndex);
      return row && reportedRun(row);
    },
  };
}

/** Reads the suite of a batch and the definition of a case, by their keys. */
export interface Definitions {
  suite(batch: number): Suite;
  case(batchCase: number): Case;
}

export function readsDefinitions(database: DatabaseSync): Definitions {
  const suite = database.prepare('SELECT suite FROM batches WHERE key = ?');
  const definition = database.prepare('SELECT definition FROM batch_cases WHERE key = ?');
  return {
    suite: (batch) => JSON.parse(String(suite.get(batch)?.suite)),
    case: (batchCase) => JSON.parse(String(definition.get(batchCase)?.definition)),
  };
}

/** Keeps the value that was read last. All of them together may not fit into memory. */
export function lastRead<More extends unknown[], Value>(
  read: (key: number, ...more: More) => Value,
): (key: number, ...more: More) => Value {
  let last: { key: number; value: Value } | undefined;
  return (key, ...more) => {
    if (last?.key !== key) {
      // The value before it can be collected while the next one is made.
      last = undefined;
      last = { key, value: read(key, ...more) };
    }
    return last.value;
  };
}

function reportedRun(row: Record<string, unknown>): ReportedRun {
  return {
    key: Number(row.key),
    id: String(row.id),
    case: JSON.parse(String(row.case_name)),
    local: row.local === 1,
    trials: Number(row.trials),
  };
}

/** A list of a case's runs. `variant` is a variant's id or, if the case has no such variant, a model. */
interface RunList {
  caseId: string;
  variant: string | undefined;
}

/** The runs that a list has: all of a case, those of one variant, or those of one model. */
export type RunFilter = 'all' | 'variant' | 'model';

/** Reads pages of runs by their positions, so that a late page costs as much as the first one. */
function createRunPages(database: DatabaseSync) {
  const selectList = database.prepare(
    'SELECT key, total FROM run_lists WHERE organization = ? AND case_id = ? AND filter = ? AND value = ?',
  );
  const selectRuns = database.prepare(
    'SELECT run FROM listed_runs WHERE list = ? AND position BETWEEN ? AND ? ORDER BY position DESC',
  );

  /** The keys of the runs of one page, newest first. */
  return (
    organization: number,
    { caseId, variant, offset, limit }: RunList & { offset: number; limit: number },
  ): { total: number; keys: number[] } => {
    const listOf = (filter: RunFilter, value: string) => selectList.get(organization, caseId, filter, value);
    const list =
      variant === undefined ? listOf('all', '') : (listOf('variant', variant) ?? listOf('model', variant));
    const total = Number(list?.total ?? 0);
    // An offset far past the end may not be an integer that SQLite accepts.
    if (!list || offset >= total) return { total, keys: [] };
    // Another process may add runs now, but that changes no position.
    const newest = total - offset - 1;
    const rows = selectRuns.all(Number(list.key), newest - limit + 1, newest);
    return { total, keys: rows.map(({ run }) => Number(run)) };
  };
}

interface NewTrial {
  /** The run's key. */
  run: number;
  ordinal: number;
  summary: EndedTrial;
  /** JSON. */
  leftovers: string;
  /** JSON of the trial as run records carry it. */
  record: string;
}

/** Columns of an {@link EndedTrial}. */
const summaryColumns = 'verdict, commands, cost_usd, ended_at';

/** The trials of a run are next to one another in the table. SQL for the range of their possible keys. */
export const keysOfRun = (run: string) => `${run} * 16 AND ${run} * 16 + 15`;
/** The key of a trial. */
export const keyOf = (run: number, ordinal: number) => run * 16 + ordinal;

/** Ended trials. A trial without a row is still queued. */
export function createTrialStore(database: DatabaseSync) {
  const selectTexts = database.prepare('SELECT record, leftovers FROM trials WHERE key = ?');
  const selectSize = database.prepare('SELECT octet_length(record) AS size FROM trials WHERE key = ?');
  const selectSlice = database.prepare(
    'SELECT substr(CAST(record AS BLOB), ?, ?) AS slice FROM trials WHERE key = ?',
  );
  const insert = database.prepare(
    `INSERT INTO trials (key, verdict, commands, cost_usd, ended_at, leftovers, record)
     VALUES (?, ?, ?, ?, ?, ?, ?)`,
  );
  const count = database.prepare(`SELECT count(*) AS ended FROM trials WHERE key BETWEEN ${keysOfRun('?1')}`);
  const selectSummaries = database.prepare(
    `SELECT key, ${summaryColumns} FROM trials WHERE key BETWEEN ${keysOfRun('?1')} ORDER BY key`,
  );

  return {
    /** The stored texts of a trial; undefined if it has not been reported. */
    read(run: number, ordinal: number): Pick<NewTrial, 'record' | 'leftovers'> | undefined {
      const row = selectTexts.get(keyOf(run, ordinal));
      return row && { record: String(row.record), leftovers: String(row.leftovers) };
    },
    add({ run, ordinal, summary, leftovers, record }: NewTrial): void {
      const { verdict, commands, costUsd, endedAt } = summary;
      insert.run(keyOf(run, ordinal), verdict, commands ?? null, costUsd ?? null, endedAt, leftovers, record);
    },
    /** How many trials of a run have ended. */
    count: (run: number): number => Number(count.get(run)?.ended),
    /** By ordinal. Cheap, because it does not read the trials' JSON. */
    summaries(run: number): Map<number, EndedTrial> {
      const rows = selectSummaries.all(run).map((row) => inCode<EndedTrial & { key: number }>(row));
      return new Map(rows.map(({ key, ...summary }) => [key - keyOf(run, 0), summary]));
    },
    /**
     * JSON of one trial, as bytes, because decoding a long text takes four times as long as reading it. In
     * slices, so that a slow reader holds only one in memory. No slices if the trial has not ended.
     */
    *record(run: number, ordinal: number): Generator<Uint8Array> {
      const key = keyOf(run, ordinal);
      const size = Number(selectSize.get(key)?.size ?? 0);
      for (let at = 0; at < size; at += pieceSizes.record)
        yield selectSlice.get(at + 1, pieceSizes.record, key)?.slice as Uint8Array;
    },
  };
}

/** An agent's right to run a trial. */
export interface Lease {
  agent: string;
  /** From 1. Each new lease of a trial has a larger number. */
  attempt: number;
  /** Epoch milliseconds. The row stays after that. */
  expiresAt: number;
}

/** Milliseconds. */
const longest = claimLimits.seconds * 1000;

/**
 * Whether a lease holds. A lease that ends later than any that is granted now does not hold: the clock was
 * set back since it was granted, and its agent may be gone long before the clock reaches that time again.
 */
export function holds(expiresAt: number, now: number): boolean {
  return expiresAt > now && expiresAt <= now + longest;
}

/** The newest lease of each trial that was claimed and has not ended. */
export function createLeaseStore(database: DatabaseSync) {
  const select = database.prepare('SELECT agent, attempt, expires_at FROM leases WHERE trial = ?');
  const put = database.prepare(
    `INSERT INTO leases (trial, agent, attempt, expires_at) VALUES (?, ?, ?, ?)
     ON CONFLICT DO UPDATE
     SET agent = excluded.agent, attempt = excluded.attempt, expires_at = excluded.expires_at`,
  );
  const remove = database.prepare('DELETE FROM leases WHERE trial = ?');
  const selectHeld = database.prepare(
    `SELECT trial FROM leases WHERE trial BETWEEN ${keysOfRun('?1')} AND expires_at > ?2 AND expires_at <= ?3`,
  );

  return {
    read(run: number, ordinal: number): Lease | undefined {
      const row = select.get(keyOf(run, ordinal));
      return row && inCode<Lease>(row);
    },
    /** Stores a trial's newest lease. */
    put(run: number, ordinal: number, { agent, attempt, expiresAt }: Lease): void {
      put.run(keyOf(run, ordinal), agent, attempt, expiresAt);
    },
    /** Forgets the lease of a trial that has ended. */
    remove(run: number, ordinal: number): void {
      remove.run(keyOf(run, ordinal));
    },
    /** The ordinals of a run's trials whose lease has not expired. */
    held(run: number, now: number): Set<number> {
      return new Set(
        selectHeld.all(run, now, now + longest).map(({ trial }) => Number(trial) - keyOf(run, 0)),
      );
    },
  };
}
