import type { DatabaseSync } from 'node:sqlite';

export interface RunPage {
  total: number;
  /** Newest first. */
  keys: number[];
}

/** One page of a case's runs. `variant` is a variant's id or, if the case has no such variant, a model. */
export type ReadRunPage = (
  organization: number,
  list: { caseId: string; variant: string | undefined; offset: number; limit: number },
) => RunPage;

/** The runs that a list has: all of a case, those of one variant, or those of one model. */
export type RunFilter = 'all' | 'variant' | 'model';

/** Reads pages of runs by their positions, so that a late page costs as much as the first one. */
export function createRunPages(database: DatabaseSync): ReadRunPage {
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
