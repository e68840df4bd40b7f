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
  /** As they were sent: the run's setup follows from them. */
  suite: Suite;
  definition: Case;
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

export interface RunPage {
  total: number;
  /** Newest first. */
  keys: number[];
}

/** Reads runs, always of one organization. */
export interface RunStore {
  /** One page of a case's runs. `variant` is a variant's id or, if the case has no such variant, a model. */
  page(
    organization: number,
    list: { caseId: string; variant: string | undefined; offset: number; limit: number },
  ): RunPage;
  read(key: number): RunRow;
  /** A run by its own id. */
  find(organization: number, id: string): ReportedRun | undefined;
  /** A run by its own id, or by its batch's id and its index in the batch. */
  findReported(organization: number, id: string, taskIndex: number): ReportedRun | undefined;
}

export function createRunStore(database: DatabaseSync): RunStore {
  const total = database.prepare(
    'SELECT total FROM run_totals WHERE organization = ? AND case_id = ? AND filter = ? AND value = ?',
  );
  const newest = 'ORDER BY key DESC LIMIT ? OFFSET ?';
  const pages = {
    all: database.prepare(`SELECT key FROM runs WHERE organization = ? AND case_id = ? AND '' = ? ${newest}`),
    variant: database.prepare(
      `SELECT key FROM runs WHERE organization = ? AND case_id = ? AND variant_id = ? ${newest}`,
    ),
    model: database.prepare(
      `SELECT key FROM runs WHERE organization = ? AND case_id = ? AND model = ? ${newest}`,
    ),
  };
  const read = database.prepare(
    `SELECT runs.key, runs.id, runs.variant, runs.definition_hash, runs.local, runs.trials, runs.started_at,
       batches.id AS batchId, batches.suite, batches.suite_name, batches.trigger, batch_cases.case_name,
       batch_cases.definition
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

  function totalOf(organization: number, caseId: string, filter: keyof typeof pages, value: string): number {
    return Number(total.get(organization, caseId, filter, value)?.total ?? 0);
  }

  return {
    page(organization, { caseId, variant, offset, limit }) {
      const value = variant ?? '';
      let filter: keyof typeof pages = variant === undefined ? 'all' : 'variant';
      let runs = totalOf(organization, caseId, filter, value);
      if (filter === 'variant' && runs === 0) {
        filter = 'model';
        runs = totalOf(organization, caseId, filter, value);
      }
      // An offset far past the end may not be an integer that SQLite accepts.
      if (offset >= runs) return { total: runs, keys: [] };
      const rows = pages[filter].all(organization, caseId, value, limit, offset);
      return { total: runs, keys: rows.map((row) => Number(row.key)) };
    },
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
        suite: JSON.parse(String(row.suite)),
        definition: JSON.parse(String(row.definition)),
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

function reportedRun(row: Record<string, unknown>): ReportedRun {
  return {
    key: Number(row.key),
    id: String(row.id),
    case: JSON.parse(String(row.case_name)),
    local: row.local === 1,
    trials: Number(row.trials),
  };
}
