import type { DatabaseSync } from 'node:sqlite';
import type { CaseEntry } from '../../contract/catalog.ts';

/** The cases of started runs. */
export interface CaseStore {
  /** Ordered by suite and case id; of one suite, if it is given. */
  list(organization: number, suiteId: string | undefined): CaseEntry[];
}

export function createCaseStore(database: DatabaseSync): CaseStore {
  const ofAll = database.prepare('SELECT entry FROM cases WHERE organization = ? ORDER BY suite_id, case_id');
  const ofSuite = database.prepare(
    'SELECT entry FROM cases WHERE organization = ? AND suite_id = ? ORDER BY case_id',
  );

  return {
    list(organization, suiteId) {
      const rows = suiteId === undefined ? ofAll.all(organization) : ofSuite.all(organization, suiteId);
      return rows.map(({ entry }) => JSON.parse(String(entry)));
    },
  };
}
