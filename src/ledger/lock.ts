import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
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
    const holder = holderFile(dataFolder, name);
    try {
      writeFileSync(holder, `${process.pid} ${hostname()}`, { mode: 0o600 });
    } catch {
      // The lock is held all the same, also on a full disk.
    }
    const release = (...files: string[]) => {
      if (!database.isOpen) return;
      // Removed while held: a process that opened the file just before gets a lock that nobody else takes.
      for (const one of [holder, ...files]) rmSync(one, { force: true });
      database.close();
    };
    return { name, remove: () => release(file), [Symbol.dispose]: () => release() };
  } catch (error) {
    throw databaseFailure(file, error);
  }
}

export interface LockHolder {
  pid: number;
  host: string;
  /** When it took the lock, in milliseconds. */
  since: number;
}

/** The process that holds a lock which is held; undefined if it is not known. */
export function lockHolder(dataFolder: string, name: string): LockHolder | undefined {
  const file = holderFile(dataFolder, name);
  try {
    const [, pid, host] = /^(\d+) (\S+)$/.exec(readFileSync(file, 'utf8')) ?? [];
    return host === undefined ? undefined : { pid: Number(pid), host, since: statSync(file).mtimeMs };
  } catch {
    // It ends just now, or is an older Offsite.
    return undefined;
  }
}

function holderFile(dataFolder: string, name: string): string {
  return join(dataFolder, 'locks', `${name}.holder`);
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
