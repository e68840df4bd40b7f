import type { DatabaseSync } from 'node:sqlite';
import type { Baseline } from '../../contract/catalog.ts';

/** A cell of a case with an ended trial of a platform run. */
export interface BaselineCell extends Pick<Baseline, 'suite' | 'case' | 'variant' | 'definitionHash'> {
  /** The newest run with an ended trial, which gives the other fields. */
  newest: number;
}

export interface BaselineRunRow {
  key: number;
  id: string;
  batchId: string;
  /** Epoch milliseconds. */
  startedAt: number;
  trials: number;
}

/** What baselines are made of: the platform runs of a cell. A reported run is never among them. */
export interface BaselineStore {
  /** The newest first; of one suite, if it is given. */
  cells(organization: number, of: { caseId: string; suiteId: string | undefined }): BaselineCell[];
  /** The runs of the cell's definition that have an ended trial, newest first. */
  runs(organization: number, cell: BaselineCell, limit: number): BaselineRunRow[];
  /** How many platform runs the cell has, ended or not. */
  counts(organization: number, cell: BaselineCell): { sameDefinition: number; all: number };
}

export function createBaselineStore(database: DatabaseSync): BaselineStore {
  const hasEnded = `EXISTS (SELECT 1 FROM completed_trials AS ended
    WHERE ended.key BETWEEN runs.key * 16 AND runs.key * 16 + 15)`;
  const ofCell =
    'FROM runs WHERE organization = ? AND case_id = ? AND suite_id = ? AND variant_id = ? AND local = 0';
  const selectCells = database.prepare(
    `SELECT DISTINCT suite_id, variant_id FROM runs
     WHERE organization = ? AND case_id = ? AND suite_id IS NOT NULL AND local = 0`,
  );
  const selectNewest = database.prepare(`SELECT key ${ofCell} AND ${hasEnded} ORDER BY key DESC LIMIT 1`);
  const selectNames = database.prepare(
    `SELECT runs.variant, runs.definition_hash, batches.suite_name, batch_cases.case_name
     FROM runs JOIN batches ON batches.key = runs.batch JOIN batch_cases ON batch_cases.key = runs.batch_case
     WHERE runs.key = ?`,
  );
  const selectRuns = database.prepare(
    `SELECT runs.key, runs.id, runs.started_at, runs.trials,
       (SELECT id FROM batches WHERE batches.key = runs.batch) AS batchId
     ${ofCell} AND definition_hash = ? AND ${hasEnded} ORDER BY key DESC LIMIT ?`,
  );
  const countDefinition = database.prepare(`SELECT count(*) AS runs ${ofCell} AND definition_hash = ?`);
  const countAll = database.prepare(`SELECT count(*) AS runs ${ofCell}`);
  const idsOf = (organization: number, cell: BaselineCell) =>
    [organization, cell.case.id, cell.suite.id, cell.variant.id] as const;

  function newestOf(organization: number, caseId: string, row: Record<string, unknown>): number | undefined {
    const found = selectNewest.get(organization, caseId, String(row.suite_id), String(row.variant_id));
    return found && Number(found.key);
  }

  return {
    cells(organization, { caseId, suiteId }) {
      return selectCells
        .all(organization, caseId)
        .filter((row) => suiteId === undefined || row.suite_id === suiteId)
        .flatMap((row) => newestOf(organization, caseId, row) ?? [])
        .sort((one, other) => other - one)
        .map((newest) => {
          const row = selectNames.get(newest);
          return {
            newest,
            suite: JSON.parse(String(row?.suite_name)),
            case: JSON.parse(String(row?.case_name)),
            variant: JSON.parse(String(row?.variant)),
            definitionHash: String(row?.definition_hash),
          };
        });
    },
    runs: (organization, cell, limit) =>
      selectRuns.all(...idsOf(organization, cell), cell.definitionHash, limit).map((row) => ({
        key: Number(row.key),
        id: String(row.id),
        batchId: String(row.batchId),
        startedAt: Number(row.started_at),
        trials: Number(row.trials),
      })),
    counts(organization, cell) {
      const ids = idsOf(organization, cell);
      return {
        sameDefinition: Number(countDefinition.get(...ids, cell.definitionHash)?.runs),
        all: Number(countAll.get(...ids)?.runs),
      };
    },
  };
}
