import type { Case, Suite } from '../../contract/definition.ts';
import { claimLimits } from '../../contract/operations.ts';
import type { Records, Row } from '../../ledger/records.ts';
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
export function createRunStore(records: Records) {
  const columns = `SELECT runs.key, runs.id, runs.local, runs.trials, batch_cases.case_name
    FROM runs JOIN batch_cases ON batch_cases.key = runs.batch_case`;

  /** A run by its own id. */
  function find(organization: number, id: string): ReportedRun | undefined {
    const query = `${columns} WHERE runs.id = ? AND runs.organization = ?`;
    return reportedRun(records.get(query, id, organization));
  }

  return {
    find,
    /** As they were sent: a run's setup follows from them. They may be long. */
    definitions: readsDefinitions(records),
    read(key: number): RunRow {
      const [row] = records.select<Omit<RunRow, 'local'> & { local: number }>(
        `SELECT runs.key, runs.id, runs.variant AS variant_json, runs.definition_hash, runs.local, runs.trials,
           runs.started_at, runs.batch, runs.batch_case, batches.id AS batch_id,
           batches.suite_name AS suite_json, batches.trigger AS trigger_json,
           batch_cases.case_name AS case_json
         FROM runs JOIN batches ON batches.key = runs.batch
           JOIN batch_cases ON batch_cases.key = runs.batch_case
         WHERE runs.key = ?`,
        key,
      );
      if (!row) throw new Error(`run ${key} is listed but not there`);
      return { ...row, local: row.local === 1 };
    },
    /** A run by its own id, or by its batch's id and its index in the batch. */
    findReported(organization: number, id: string, taskIndex: number): ReportedRun | undefined {
      const ofBatch = `${columns} JOIN batches ON batches.key = runs.batch
        WHERE batches.id = ? AND runs.organization = ? AND runs.task_index = ?`;
      return find(organization, id) ?? reportedRun(records.get(ofBatch, id, organization, taskIndex));
    },
    /**
     * The keys of the runs of one page, newest first. A page is read by the positions of its runs, so that a
     * late one costs as much as the first one.
     *
     * @param list `variant` is a variant's id or, if the case has no such variant, a model
     */
    page(
      organization: number,
      list: { caseId: string; variant: string | undefined; offset: number; limit: number },
    ): { total: number; keys: number[] } {
      const { caseId, variant, offset, limit } = list;
      const lists = `SELECT key, total FROM run_lists
        WHERE organization = ? AND case_id = ? AND filter = ? AND value = ?`;
      const listOf = (filter: RunFilter, value: string) =>
        records.get(lists, organization, caseId, filter, value);
      const found =
        variant === undefined ? listOf('all', '') : (listOf('variant', variant) ?? listOf('model', variant));
      const total = Number(found?.total ?? 0);
      // An offset far past the end may not be an integer that SQLite accepts.
      if (!found || offset >= total) return { total, keys: [] };
      // Another process may add runs now, but that changes no position.
      const newest = total - offset - 1;
      const runs = `SELECT run FROM listed_runs WHERE list = ? AND position BETWEEN ? AND ?
        ORDER BY position DESC`;
      const rows = records.all(runs, Number(found.key), newest - limit + 1, newest);
      return { total, keys: rows.map(({ run }) => Number(run)) };
    },
  };
}

/** The runs that a list has: all of a case, those of one variant, or those of one model. */
export type RunFilter = 'all' | 'variant' | 'model';

function reportedRun(row: Row | undefined): ReportedRun | undefined {
  if (!row) return undefined;
  const { case_name: names, local, ...run } = row;
  return { ...(run as Pick<ReportedRun, 'key' | 'id' | 'trials'>), case: jsonIn(names), local: local === 1 };
}

/** The value of JSON that the service wrote itself, mostly to a column; undefined if there is none. */
export function jsonIn(text: unknown) {
  return typeof text === 'string' ? JSON.parse(text) : undefined;
}

/** Reads the suite of a batch and the definition of a case, by their keys. */
export interface Definitions {
  suite(batch: number): Suite;
  case(batchCase: number): Case;
}

export function readsDefinitions(records: Records): Definitions {
  return {
    suite: (batch) => jsonIn(records.get('SELECT suite FROM batches WHERE key = ?', batch)?.suite),
    case: (key) => jsonIn(records.get('SELECT definition FROM batch_cases WHERE key = ?', key)?.definition),
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

/** The trials of a run are next to one another in the table. SQL for the range of their possible keys. */
export const keysOfRun = (run: string) => `${run} * 16 AND ${run} * 16 + 15`;
/** The key of a trial. */
export const keyOf = (run: number, ordinal: number) => run * 16 + ordinal;

/** Ended trials. A trial without a row is still queued. */
export function createTrialStore(records: Records) {
  const ofRun = `FROM trials WHERE key BETWEEN ${keysOfRun('?1')}`;
  return {
    /** The stored texts of a trial; undefined if it has not been reported. */
    read: (run: number, ordinal: number) =>
      records.get('SELECT record, leftovers FROM trials WHERE key = ?', keyOf(run, ordinal)) as
        | Pick<NewTrial, 'record' | 'leftovers'>
        | undefined,
    add({ run, ordinal, summary, leftovers, record }: NewTrial): void {
      records.insert('trials', { key: keyOf(run, ordinal), ...summary, leftovers, record });
    },
    /** How many trials of a run have ended. */
    count: (run: number) => Number(records.get(`SELECT count(*) AS ended ${ofRun}`, run)?.ended),
    /** By ordinal. Cheap, because it does not read the trials' JSON. */
    summaries(run: number): Map<number, EndedTrial> {
      const rows = records.select<EndedTrial & { key: number }>(
        `SELECT key, verdict, commands, cost_usd, ended_at ${ofRun} ORDER BY key`,
        run,
      );
      return new Map(rows.map(({ key, ...summary }) => [key - keyOf(run, 0), summary]));
    },
    /**
     * JSON of one trial, as bytes, because decoding a long text takes four times as long as reading it. In
     * slices, so that a slow reader holds only one in memory. No slices if the trial has not ended.
     */
    *record(run: number, ordinal: number): Generator<Uint8Array> {
      const key = keyOf(run, ordinal);
      const found = records.get('SELECT octet_length(record) AS size FROM trials WHERE key = ?', key);
      const query = 'SELECT substr(CAST(record AS BLOB), ?, ?) AS slice FROM trials WHERE key = ?';
      for (let at = 0; at < Number(found?.size ?? 0); at += pieceSizes.record)
        yield records.get(query, at + 1, pieceSizes.record, key)?.slice as Uint8Array;
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
export function createLeaseStore(records: Records) {
  return {
    read(run: number, ordinal: number): Lease | undefined {
      const query = 'SELECT agent, attempt, expires_at FROM leases WHERE trial = ?';
      return records.select<Lease>(query, keyOf(run, ordinal))[0];
    },
    /** Stores a trial's newest lease. */
    put(run: number, ordinal: number, { agent, attempt, expiresAt }: Lease): void {
      const query = `INSERT INTO leases (trial, agent, attempt, expires_at) VALUES (?, ?, ?, ?)
        ON CONFLICT DO UPDATE
        SET agent = excluded.agent, attempt = excluded.attempt, expires_at = excluded.expires_at`;
      records.run(query, keyOf(run, ordinal), agent, attempt, expiresAt);
    },
    /** Forgets the lease of a trial that has ended. */
    remove(run: number, ordinal: number): void {
      records.run('DELETE FROM leases WHERE trial = ?', keyOf(run, ordinal));
    },
    /** The ordinals of a run's trials whose lease has not expired. */
    held(run: number, now: number): Set<number> {
      const query = `SELECT trial, expires_at FROM leases WHERE trial BETWEEN ${keysOfRun('?1')}`;
      const held = records.all(query, run).filter((lease) => holds(Number(lease.expires_at), now));
      return new Set(held.map(({ trial }) => Number(trial) - keyOf(run, 0)));
    },
  };
}
