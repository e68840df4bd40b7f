import type { DatabaseSync } from 'node:sqlite';
import type { Case, Suite } from '../../contract/definition.ts';
import { createRunPages, type ReadRunPage } from './run-pages.ts';

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

/** Reads runs, always of one organization. */
export interface RunStore {
  page: ReadRunPage;
  read(key: number): RunRow;
  /** A run by its own id. */
  find(organization: number, id: string): ReportedRun | undefined;
  /** A run by its own id, or by its batch's id and its index in the batch. */
  findReported(organization: number, id: string, taskIndex: number): ReportedRun | undefined;
}

export function createRunStore(database: DatabaseSync): RunStore {
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

  return {
    page: createRunPages(database),
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
