import type { DatabaseSync } from 'node:sqlite';
import type { Case, Suite } from '../../contract/definition.ts';

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
  triggerJson: string | null;
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
export interface RunStore {
  page: ReadRunPage;
  read(key: number): RunRow;
  /** As they were sent: a run's setup follows from them. They may be long. */
  definitions: Definitions;
  /** A run by its own id. */
  find(organization: number, id: string): ReportedRun | undefined;
  /** A run by its own id, or by its batch's id and its index in the batch. */
  findReported(organization: number, id: string, taskIndex: number): ReportedRun | undefined;
}

export function createRunStore(database: DatabaseSync): RunStore {
  const read = database.prepare(
    `SELECT runs.key, runs.id, runs.variant, runs.definition_hash, runs.local, runs.trials, runs.started_at,
       runs.batch, runs.batch_case, batches.id AS batchId, batches.suite_name, batches.trigger,
       batch_cases.case_name
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
    definitions: readsDefinitions(database),
    read(key) {
      const row = read.get(key);
      if (!row) throw new Error(`run ${key} is listed but not there`);
      return {
        key,
        id: String(row.id),
        batchId: String(row.batchId),
        caseJson: String(row.case_name),
        suiteJson: String(row.suite_name),
        variantJson: String(row.variant),
        batch: Number(row.batch),
        batchCase: Number(row.batch_case),
        triggerJson: row.trigger === null ? null : String(row.trigger),
        definitionHash: String(row.definition_hash),
        local: row.local === 1,
        trials: Number(row.trials),
        startedAt: Number(row.started_at),
      };
    },
    find(organization, id) {
      const row = byRun.get(id, organization);
      return row && reportedRun(row);
    },
    findReported(organization, id, taskIndex) {
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

interface RunPage {
  total: number;
  /** Newest first. */
  keys: number[];
}

/** One page of a case's runs. `variant` is a variant's id or, if the case has no such variant, a model. */
type ReadRunPage = (
  organization: number,
  list: { caseId: string; variant: string | undefined; offset: number; limit: number },
) => RunPage;

/** The runs that a list has: all of a case, those of one variant, or those of one model. */
export type RunFilter = 'all' | 'variant' | 'model';

/** Reads pages of runs by their positions, so that a late page costs as much as the first one. */
function createRunPages(database: DatabaseSync): ReadRunPage {
  const selectList = database.prepare(
    'SELECT key, total FROM run_lists WHERE organization = ? AND case_id = ? AND filter = ? AND value = ?',
  );
  const selectRuns = database.prepare(
    'SELECT run FROM listed_runs WHERE list = ? AND position BETWEEN ? AND ? ORDER BY position DESC',
  );

  return (organization, { caseId, variant, offset, limit }) => {
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
