import type { DatabaseSync } from 'node:sqlite';
import type { Case, Suite } from '../../contract/definition.ts';
import { inCode } from '../../ledger/records.ts';

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
