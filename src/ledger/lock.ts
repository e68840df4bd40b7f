import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { makeFolder } from '../base/byte-store.ts';
import { closedFile } from './data-folder.ts';
import { databaseFailure } from './database-failure.ts';

export interface Lock extends Disposable {
  readonly name: string;
  /** Releases the lock and removes its file. Use it for a lock that nobody will take again. */
  remove(): void;
}

/**
 * Takes a lock of the data folder; undefined if another process, or another part of this one, holds it. The
 * operating system frees the lock when this process ends, however it ends. Node has no flock, so the lock is
 * an exclusive transaction on an empty SQLite file.
 *
 * @param name letters, digits and dashes
 */
export function takeLock(dataFolder: string, name: string): Lock | undefined {
  const folder = join(dataFolder, 'locks');
  const file = join(folder, `${name}.lock`);
  try {
    makeFolder(folder, 0o700);
    closedFile(file);
    const database = new DatabaseSync(file, { timeout: 0 });
    try {
      database.exec('BEGIN EXCLUSIVE');
    } catch (error) {
      database.close();
      if ((error as { errcode?: number }).errcode === 5) return undefined;
      throw error;
    }
    const release = () => {
      if (database.isOpen) database.close();
    };
    return {
      name,
      remove() {
        // Removed while held: a process that opened the file just before gets a lock that nobody else takes.
        rmSync(file, { force: true });
        release();
      },
      [Symbol.dispose]: release,
    };
  } catch (error) {
    throw databaseFailure(file, error);
  }
}

/** Whether a process holds a lock of the data folder. Only looks, and makes no file. */
export function isLocked(dataFolder: string, name: string): boolean {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(join(dataFolder, 'locks', `${name}.lock`), { readOnly: true, timeout: 0 });
    database.exec('SELECT count(*) FROM sqlite_schema');
    return false;
  } catch (error) {
    return (error as { errcode?: number }).errcode === 5;
  } finally {
    database?.close();
  }
}
