import type { DatabaseSync, StatementSync } from 'node:sqlite';

/**
 * Group commit. A commit waits for the disk, so changes that arrive in one turn of the event loop share one
 * transaction. Each change succeeds only after the commit. A change that throws is rolled back alone and does
 * not affect the others.
 */
export interface Writer {
  /**
   * Runs `change` (synchronous, on the writer's database) and resolves to its result after the commit is on
   * disk.
   */
  write<Result>(change: () => Result): Promise<Result>;
  /** Commits the waiting changes at once. */
  flush(): void;
}

interface Waiting {
  /**
   * Makes the change and returns a function to call after the commit. Throws if the whole transaction is
   * lost.
   */
  apply(): () => void;
  reject(error: unknown): void;
}

export function createWriter(database: DatabaseSync): Writer {
  const savepoint = {
    set: database.prepare('SAVEPOINT change'),
    keep: database.prepare('RELEASE change'),
    undo: database.prepare('ROLLBACK TO change'),
  };
  let waiting: Waiting[] = [];

  function commitWaiting(): void {
    const group = waiting;
    if (group.length === 0) return;
    waiting = [];
    try {
      database.exec('BEGIN IMMEDIATE');
      const settlers = group.map((one) => one.apply());
      database.exec('COMMIT');
      for (const settle of settlers) settle();
    } catch (error) {
      // A full disk makes SQLite roll back by itself; a second ROLLBACK would hide the cause.
      if (database.isTransaction) database.exec('ROLLBACK');
      for (const one of group) one.reject(error);
    }
  }

  return {
    write: (change) =>
      new Promise((resolve, reject) => {
        if (waiting.length === 0) setImmediate(commitWaiting);
        waiting.push({ apply: () => applyAlone(database, savepoint, change, { resolve, reject }), reject });
      }),
    flush: commitWaiting,
  };
}

function applyAlone<Result>(
  database: DatabaseSync,
  savepoint: Record<'set' | 'keep' | 'undo', StatementSync>,
  change: () => Result,
  { resolve, reject }: { resolve: (result: Result) => void; reject: (error: unknown) => void },
): () => void {
  savepoint.set.run();
  try {
    const result = change();
    savepoint.keep.run();
    return () => resolve(result);
  } catch (error) {
    if (!database.isTransaction) throw error;
    savepoint.undo.run();
    savepoint.keep.run();
    return () => reject(error);
  }
}
