import type { DatabaseSync } from 'node:sqlite';
import { serviceRequests } from '../../bounds/callers.ts';
import { inCode } from '../../ledger/records.ts';

export interface CasePlace {
  suiteId: string;
  caseId: string;
}

export interface ListedCase extends CasePlace {
  /** JSON. */
  entry: string;
}

/** The cases of started runs. */
export function createCaseStore(database: DatabaseSync) {
  const columns = 'SELECT suite_id, case_id, entry FROM cases WHERE organization = ?';
  const ofAll = database.prepare(
    `${columns} AND (suite_id, case_id) > (?, ?) ORDER BY suite_id, case_id LIMIT ${serviceRequests.count.cases}`,
  );
  const ofSuite = database.prepare(
    `${columns} AND suite_id = ? AND case_id > ? ORDER BY case_id LIMIT ${serviceRequests.count.cases}`,
  );

  return {
    /**
     * JSON texts of the next entries, ordered by suite and case id; of one suite, if it is given. With
     * `after`, those after that entry: no id is empty.
     */
    list(
      organization: number,
      suiteId: string | undefined,
      after: CasePlace = { suiteId: '', caseId: '' },
    ): ListedCase[] {
      const rows =
        suiteId === undefined
          ? ofAll.all(organization, after.suiteId, after.caseId)
          : ofSuite.all(organization, suiteId, after.caseId);
      return rows.map((row) => inCode<ListedCase>(row));
    },
  };
}
