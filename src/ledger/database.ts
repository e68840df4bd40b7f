import { chmodSync, existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { infrastructureError, messageOf, OffsiteError } from '../base/offsite-error.ts';
import { closedDatabase, openDataFolder } from './data-folder.ts';
import { databaseFailure } from './database-failure.ts';

/** Milliseconds to wait for another process that writes. */
export const lockTimeoutMs = 10_000;

/**
 * Opens a SQLite file durably (WAL, every commit synced) and migrates it: `migrations[n]` takes version n to
 * n + 1. Before it migrates a file that holds data, it makes a backup (`FILE.before-vN`). Throws an
 * `infrastructure` error if the file cannot be opened, is damaged, or was written by a newer version of
 * Offsite, and `DATA_FOLDER_OPEN` if other users could read it.
 */
export function openDatabase(file: string, migrations: readonly string[]): DatabaseSync {
  try {
    openDataFolder(dirname(file));
    const isNew = !existsSync(file);
    closedDatabase(file);
    const database = new DatabaseSync(file, { timeout: lockTimeoutMs });
    try {
      database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;');
      migrate(database, { file, migrations, isNew });
      return database;
    } catch (error) {
      database.close();
      throw error;
    }
  } catch (error) {
    const failure = databaseFailure(file, error);
    if (failure instanceof OffsiteError && failure.code !== 'DATABASE_UNUSABLE') throw failure;
    throw infrastructureError('DATABASE_UNUSABLE', `cannot open the database ${file}: ${messageOf(error)}`, {
      hint:
        'Check that its disk has room, that you can write to the folder, and how many files may be open ' +
        '(ulimit -n), or name another folder with --data-folder or OFFSITE_HOME.',
      cause: error,
    });
  }
}

function migrate(
  database: DatabaseSync,
  { file, migrations, isNew }: { file: string; migrations: readonly string[]; isNew: boolean },
): void {
  const found = versionOf(database);
  if (found === migrations.length) return;
  if (found > migrations.length) {
    throw infrastructureError(
      'DATABASE_NEWER',
      `${file} has version ${found}; this Offsite knows versions up to ${migrations.length}`,
      { hint: 'A newer Offsite wrote it: use that Offsite, or name another data folder.' },
    );
  }
  if (!isNew && found > 0) backUp(database, `${file}.before-v${migrations.length}`);
  inTransaction(database, () => {
    // Another process may have migrated while we waited for the lock.
    for (let version = versionOf(database); version < migrations.length; version++) {
      database.exec(migrations[version] ?? '');
      database.exec(`PRAGMA user_version = ${version + 1}`);
    }
  });
}

/** Copies a database's current state, even while another process writes to it. Keeps an existing copy. */
export function copyDatabase(file: string, target: string): void {
  const database = new DatabaseSync(file, { readOnly: true, timeout: lockTimeoutMs });
  try {
    backUp(database, target);
  } finally {
    database.close();
  }
}

/** What SQLite finds wrong in a database's pages, even while another process writes to it. */
export function damageOfDatabase(file: string): string | undefined {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(file, { readOnly: true, timeout: lockTimeoutMs });
    return damageIn(database, 'quick');
  } catch (error) {
    return messageOf(error);
  } finally {
    database?.close();
  }
}

/**
 * What SQLite finds wrong in a database. `quick` reads every page once (about 4 ms per MB); `full` also
 * compares indexes with their tables, and takes three times as long.
 */
export function damageIn(database: DatabaseSync, depth: 'quick' | 'full'): string | undefined {
  const pragma = depth === 'quick' ? 'quick_check' : 'integrity_check';
  const rows = database.prepare(`PRAGMA ${pragma}(5)`).all();
  const findings = rows.map((row) => String(row[pragma])).join('; ');
  return findings === 'ok' ? undefined : findings;
}

function backUp(database: DatabaseSync, target: string): void {
  if (existsSync(target)) return;
  database.prepare('VACUUM INTO ?').run(target);
  chmodSync(target, 0o600);
}

function versionOf(database: DatabaseSync): number {
  return Number(database.prepare('PRAGMA user_version').get()?.user_version ?? 0);
}

/**
 * Runs `change` in one transaction, which is committed when it returns and rolled back when it throws. Do not
 * nest transactions.
 */
export function inTransaction<Result>(database: DatabaseSync, change: () => Result): Result {
  database.exec('BEGIN IMMEDIATE');
  try {
    const result = change();
    database.exec('COMMIT');
    return result;
  } catch (error) {
    // A full disk makes SQLite roll back by itself; a second ROLLBACK would hide the cause.
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}
