import type { DatabaseSync } from 'node:sqlite';
import type { Baseline } from '../../contract/catalog.ts';
import { inCode } from '../../ledger/records.ts';
import { keysOfRun } from './trials.ts';

/** A cell of a case with an ended trial that counts. */
export interface BaselineCell extends Pick<Baseline, 'suite' | 'case' | 'variant' | 'definitionHash'> {
  /** The newest run with such a trial, which gives the other fields. */
  newest: number;
}

export interface BaselineRunRow {
  key: number;
  id: string;
  batchId: string;
  /** Epoch milliseconds. */
  startedAt: number;
  trials: number;
  /** Whether its trials were reported. Only those whose evidence was graded again here count. */
  local: boolean;
}

/**
 * What baselines are made of: the platform runs of a cell, and, if the owner says so, reported runs with
 * trials whose evidence was graded again here.
 *
 * @param isAudited whether reported runs count, too
 */
export function createBaselineStore(database: DatabaseSync, isAudited: boolean) {
  const of = 'FROM runs WHERE organization = ? AND case_id = ?';
  // Each kind of run has an index of its own. A reported run has a suite's id once a trial of it counts.
  const kinds = (isAudited ? ['platform', 'reported'] : ['platform']).map((kind) => {
    const isKind = kind === 'platform' ? 'local = 0' : 'local = 1 AND suite_id IS NOT NULL';
    const hasEnded =
      kind === 'platform'
        ? `EXISTS (SELECT 1 FROM completed_trials AS ended WHERE ended.key BETWEEN ${keysOfRun('runs.key')})`
        : 'true';
    const ofCell = `${of} AND suite_id = ? AND variant_id = ? AND ${isKind}`;
    return {
      cells: database.prepare(
        `SELECT DISTINCT suite_id, variant_id ${of} AND suite_id IS NOT NULL AND ${isKind}`,
      ),
      newest: database.prepare(`SELECT key ${ofCell} AND ${hasEnded} ORDER BY key DESC LIMIT 1`),
      runs: database.prepare(
        `SELECT runs.key, runs.id, runs.started_at, runs.trials, runs.local,
           (SELECT id FROM batches WHERE batches.key = runs.batch) AS batch_id
         ${ofCell} AND definition_hash = ? AND ${hasEnded} ORDER BY key DESC LIMIT ?`,
      ),
      countDefinition: database.prepare(`SELECT count(*) AS runs ${ofCell} AND definition_hash = ?`),
      countAll: database.prepare(`SELECT count(*) AS runs ${ofCell}`),
    };
  });
  const selectNames = database.prepare(
    `SELECT runs.variant, runs.definition_hash, batches.suite_name, batch_cases.case_name
     FROM runs JOIN batches ON batches.key = runs.batch JOIN batch_cases ON batch_cases.key = runs.batch_case
     WHERE runs.key = ?`,
  );
  const idsOf = (organization: number, cell: BaselineCell) =>
    [organization, cell.case.id, cell.suite.id, cell.variant.id] as const;
  const sum = (numbers: unknown[]) => numbers.reduce((all: number, one) => all + Number(one), 0);

  return {
    /** The newest first; of one suite, if it is given. */
    cells(
      organization: number,
      { caseId, suiteId }: { caseId: string; suiteId: string | undefined },
    ): BaselineCell[] {
      const newest = new Map<string, number>();
      for (const { cells, newest: select } of kinds)
        for (const row of cells.all(organization, caseId)) {
          if (suiteId !== undefined && row.suite_id !== suiteId) continue;
          const ids = [String(row.suite_id), String(row.variant_id)] as const;
          const found = Number(select.get(organization, caseId, ...ids)?.key ?? 0);
          const cell = JSON.stringify(ids);
          if (found > (newest.get(cell) ?? 0)) newest.set(cell, found);
        }
      return [...newest.values()]
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
    /** The runs of the cell's definition that have a trial that counts, newest first. */
    runs: (organization: number, cell: BaselineCell, limit: number): BaselineRunRow[] =>
      kinds
        .flatMap(({ runs }) => runs.all(...idsOf(organization, cell), cell.definitionHash, limit))
        .map((row) => ({ ...inCode<BaselineRunRow>(row), local: row.local === 1 }))
        .sort((one, other) => other.key - one.key)
        .slice(0, limit),
    /** How many such runs the cell has, ended or not. */
    counts(organization: number, cell: BaselineCell): { sameDefinition: number; all: number } {
      const ids = idsOf(organization, cell);
      return {
        sameDefinition: sum(
          kinds.map(({ countDefinition }) => countDefinition.get(...ids, cell.definitionHash)?.runs),
        ),
        all: sum(kinds.map(({ countAll }) => countAll.get(...ids)?.runs)),
      };
    },
  };
}
