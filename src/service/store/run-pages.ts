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

/** The columns of a run that a list is about: with the case, its variant or its model. */
const filters = { all: `'' = ?3`, variant: 'variant_id = ?3', model: 'model = ?3' };
type Filter = keyof typeof filters;

/** How many places in lists are remembered, and of how many characters. A case's id may have a million. */
const remembered = { places: 10_000, characters: 1_000 };

/**
 * Reads pages of runs. To count off the runs before a late page takes longer than to read it, so it remembers
 * where pages began and ended. A run's position in a list, counted from the oldest run, never changes: keys
 * grow with time, and no run is deleted.
 */
export function createRunPages(database: DatabaseSync): ReadRunPage {
  const selectTotal = database.prepare(
    'SELECT total FROM run_totals WHERE organization = ? AND case_id = ? AND filter = ? AND value = ?',
  );
  const statementsOf = (condition: string) => {
    const select = `SELECT key FROM runs WHERE organization = ?1 AND case_id = ?2 AND ${condition}`;
    return {
      /** From a run on, whose key is known. */
      onFrom: database.prepare(`${select} AND key <= ?5 ORDER BY key DESC LIMIT ?4`),
      newest: database.prepare(`${select} ORDER BY key DESC LIMIT ?4 OFFSET ?5`),
      oldest: database.prepare(`${select} ORDER BY key LIMIT ?4 OFFSET ?5`),
    };
  };
  const statements = {
    all: statementsOf(filters.all),
    variant: statementsOf(filters.variant),
    model: statementsOf(filters.model),
  };
  /** The keys of runs, by their list and position. */
  const known = new Map<string, number>();

  function totalOf(organization: number, caseId: string, filter: Filter, value: string): number {
    return Number(selectTotal.get(organization, caseId, filter, value)?.total ?? 0);
  }

  function remember(place: string, key: number | undefined): void {
    if (key === undefined || place.length > remembered.characters) return;
    known.delete(place);
    known.set(place, key);
    const [first] = known.keys();
    if (known.size > remembered.places && first !== undefined) known.delete(first);
  }

  const read: ReadRunPage = (organization, { caseId, variant, offset, limit }) => {
    const value = variant ?? '';
    let filter: Filter = variant === undefined ? 'all' : 'variant';
    let total = totalOf(organization, caseId, filter, value);
    if (filter === 'variant' && total === 0) {
      filter = 'model';
      total = totalOf(organization, caseId, filter, value);
    }
    // An offset far past the end may not be an integer that SQLite accepts.
    if (offset >= total) return { total, keys: [] };

    const place = (position: number) => JSON.stringify([organization, caseId, filter, value, position]);
    /** Of the newest run of the page. */
    const position = total - offset - 1;
    // One more: the next page begins with it.
    const count = Math.min(limit, position) + 1;
    const list = [organization, caseId, value, count] as const;
    const from = known.get(place(position));
    const { onFrom, newest, oldest } = statements[filter];
    const rows =
      from !== undefined
        ? onFrom.all(...list, from)
        : offset <= position
          ? newest.all(...list, offset)
          : oldest.all(...list, position + 1 - count).toReversed();
    const keys = rows.map(({ key }) => Number(key));
    remember(place(position), keys[0]);
    remember(place(position - limit), keys[limit]);
    return { total, keys: keys.slice(0, limit) };
  };

  return (organization, list) => {
    // Another process may add runs between two statements.
    database.exec('SAVEPOINT page');
    try {
      return read(organization, list);
    } finally {
      database.exec('RELEASE page');
    }
  };
}
