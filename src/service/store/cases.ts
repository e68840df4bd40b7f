import type { DatabaseSync } from 'node:sqlite';
import type { CaseEntry } from '../../contract/catalog.ts';
import type { TrialSummary } from '../record/distribution.ts';
import { keysOfRun, summaryColumns, summaryOf } from './trials.ts';

/** The cases of started runs, and the results of their platform runs. */
export interface CaseStore {
  /** Ordered by suite and case id; of one suite, if it is given. */
  list(organization: number, suiteId: string | undefined): CaseEntry[];
  /** The ended trials of a cell's platform runs. A reported run is never among them. */
  baselineTrials(organization: number, cell: { caseId: string; variantId: string }): BaselineTrials;
}

export interface BaselineTrials {
  runs: number;
  /** How many trials those runs planned. */
  trials: number;
  ended: TrialSummary[];
}

export function createCaseStore(database: DatabaseSync): CaseStore {
  const ofAll = database.prepare('SELECT entry FROM cases WHERE organization = ? ORDER BY suite_id, case_id');
  const ofSuite = database.prepare(
    'SELECT entry FROM cases WHERE organization = ? AND suite_id = ? ORDER BY case_id',
  );
  const platformRuns = 'FROM runs WHERE organization = ? AND case_id = ? AND variant_id = ? AND local = 0';
  const baselineRuns = database.prepare(
    `SELECT count(*) AS runs, coalesce(sum(trials), 0) AS trials ${platformRuns}`,
  );
  const baselineTrials = database.prepare(
    `SELECT ${summaryColumns} FROM (SELECT key AS run ${platformRuns})
     CROSS JOIN trials ON trials.key BETWEEN ${keysOfRun('run')}`,
  );

  return {
    list(organization, suiteId) {
      const rows = suiteId === undefined ? ofAll.all(organization) : ofSuite.all(organization, suiteId);
      return rows.map(({ entry }) => JSON.parse(String(entry)));
    },
    baselineTrials(organization, { caseId, variantId }) {
      const row = baselineRuns.get(organization, caseId, variantId);
      return {
        runs: Number(row?.runs),
        trials: Number(row?.trials),
        ended: baselineTrials.all(organization, caseId, variantId).map(summaryOf),
      };
    },
  };
}
