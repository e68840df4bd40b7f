import { chmodSync, createReadStream, existsSync } from 'node:fs';
import { copyFile, rename, rm, stat } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { makeFolder } from '../base/byte-store.ts';
import { infrastructureError, inputError, messageOf } from '../base/offsite-error.ts';
import { BlobStore } from './blobs.ts';
import { copyDatabase } from './database.ts';
import type { Ledger } from './ledger.ts';
import type { Records } from './records.ts';
import { directReferences } from './references.ts';

export interface BackedUp {
  folder: string;
  /** The names of the databases: the ledger, and what stands beside it. */
  databases: string[];
  blobs: number;
  /** Suites that wait in the queue folder. */
  waiting: number;
  /** Of databases and blobs. */
  byteSize: number;
  /** Damaged blobs, which are not in the backup. */
  damaged: string[];
  /** Blobs that the record needs, and that do not exist. */
  missing: string[];
}

/**
 * Copies the ledger's current state and all blobs to a new folder, which can be used as a data folder. The
 * archives of workspaces are not copied. The folder gets its name when it is complete. Throws
 * `BACKUP_EXISTS` and `BACKUP_FAILED`.
 *
 * @param beside further databases of the data folder, with what notes in a copy that it is one; those that do
 *   not exist are left out
 * @param queue lists files of the data folder's queue
 */
export async function backUpLedger(
  { dataFolder, records, blobs }: Ledger,
  target: string,
  signal: AbortSignal,
  beside: readonly { name: string; noteCopy(file: string): void }[] = [],
  queue: () => Promise<readonly string[]> = async () => [],
): Promise<BackedUp> {
  const folder = resolve(target);
  if (existsSync(folder)) {
    throw inputError('BACKUP_EXISTS', `${folder} exists; a backup needs a new folder`, {
      hint: 'Name a folder that does not exist yet.',
    });
  }
  const partial = `${folder}.partial`;
  try {
    await rm(partial, { recursive: true, force: true });
    makeFolder(partial, 0o700);
    // We copy the database first: the blobs, listed later, then include all that it refers to.
    const backedUp: BackedUp = {
      folder,
      databases: [],
      blobs: 0,
      waiting: 0,
      byteSize: 0,
      damaged: [],
      missing: [],
    };
    const noteCopy = (file: string) => noteNoWorkspaces(file, records.now());
    for (const { name, noteCopy: note } of [{ name: 'ledger.db', noteCopy }, ...beside]) {
      if (name !== 'ledger.db' && !existsSync(join(dataFolder, name))) continue;
      const copy = join(partial, name);
      if (name === 'ledger.db') copyLedger(records, copy);
      else copyDatabase(join(dataFolder, name), copy);
      note(copy);
      backedUp.databases.push(name);
      backedUp.byteSize += (await stat(copy)).size;
    }
    const copies = new BlobStore(join(partial, 'blobs'));
    const { blobs: stored } = await blobs.list();
    const needed = [...directReferences(records)].map(({ sha256 }) => sha256);
    backedUp.missing = [...new Set(needed)].filter((sha256) => !stored.has(sha256));
    for (const sha256 of stored) {
      signal.throwIfAborted();
      const copy = await copies.put(createReadStream(blobs.pathOf(sha256)));
      if (copy.sha256 === sha256) {
        backedUp.blobs++;
        backedUp.byteSize += copy.byteSize;
      } else {
        await copies.remove(copy.sha256);
        backedUp.damaged.push(sha256);
      }
    }
    for (const file of await queue()) {
      const copy = join(partial, relative(dataFolder, file));
      makeFolder(dirname(copy), 0o700);
      if (await copied(file, copy)) backedUp.waiting++;
    }
    await rename(partial, folder);
    return backedUp;
  } catch (error) {
    await rm(partial, { recursive: true, force: true });
    signal.throwIfAborted();
    throw infrastructureError(
      'BACKUP_FAILED',
      `cannot back up the ledger to ${folder}: ${messageOf(error)}`,
      { hint: 'Check that the disk has space, and that you can write to the parent folder.', cause: error },
    );
  }
}

/** The copy is without the archives of workspaces, so its ledger must not count on them. */
function noteNoWorkspaces(file: string, now: number): void {
  using copy = new DatabaseSync(file);
  copy.prepare("UPDATE workspaces SET removed_at = ? WHERE kind = 'archive' AND removed_at IS NULL").run(now);
}

/** Copies a file. Returns false if a daemon has started it and removed it meanwhile: the record has it. */
async function copied(file: string, copy: string): Promise<boolean> {
  try {
    await copyFile(file, copy);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}

/** Its errors say what is wrong with the ledger, and the next command looks for damage. */
function copyLedger(records: Records, target: string): void {
  records.run('VACUUM INTO ?', target);
  chmodSync(target, 0o600);
}
