import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

/**
 * The ids and the suites of the newest batches of a data folder, the newest first. Only reads the file, so it
 * takes a few milliseconds. Empty if there is no ledger, or if it cannot be read.
 */
export function recentBatches(dataFolder: string, limit: number): { id: string; suite: string }[] {
  const file = join(dataFolder, 'ledger.db');
  if (!existsSync(file)) return [];
  try {
    using database = new DatabaseSync(file, { readOnly: true });
    const newest = database.prepare(
      'SELECT id, suite FROM batches ORDER BY started_at DESC, key DESC LIMIT ?',
    );
    return newest.all(limit).map(({ id, suite }) => ({ id: String(id), suite: String(suite) }));
  } catch {
    return [];
  }
}
