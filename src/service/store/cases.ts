import type { DatabaseSync } from 'node:sqlite';
import { serviceRequests } from '../../bounds/callers.ts';

export interface CasePlace {
  suiteId: string;
  caseId: string;
}

export interface ListedCase extends CasePlace {
  /** JSON. */
  entry: string;
}

/** The cases of started runs. */
export interface CaseStore {
  /**
   * JSON texts of the next entries, ordered by suite and case id; of one suite, if it is given. With
   * `after`, those after that entry.
   */
  list(organization: number, suiteId: string | undefined, after: CasePlace | undefined): ListedCase[];
}

export function createCaseStore(database: DatabaseSync): CaseStore {
  const columns = 'SELECT suite_id, case_id, entry FROM cases WHERE organization = ?';
  const ofAll = database.prepare(
    `${columns} AND (suite_id, case_id) > (?, ?) ORDER BY suite_id, case_id LIMIT ${serviceRequests.count.cases}`,
  );
  const ofSuite = database.prepare(
    `${columns} AND suite_id = ? AND case_id > ? ORDER BY case_id LIMIT ${serviceRequests.count.cases}`,
  );

  return {
    // No id is empty.
    list(organization, suiteId, after = { suiteId: '', caseId: '' }) {
      const rows =
        suiteId === undefined
          ? ofAll.all(organization, after.suiteId, after.caseId)
          : ofSuite.all(organization, suiteId, after.caseId);
      return rows.map((row) => ({
        suiteId: String(row.suite_id),
        caseId: String(row.case_id),
        entry: String(row.entry),
      }));
    },
  };
}
