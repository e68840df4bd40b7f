import { chmodSync, closeSync, lstatSync, openSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder } from '../base/byte-store.ts';
import { infrastructureError, inputError, messageOf, type OffsiteError } from '../base/offsite-error.ts';

/** The mode bits that give access to users other than the owner. */
const others = 0o077;
/** The mode bits that let other users write. */
const othersWrite = 0o022;

/** What Offsite keeps at the top of a data folder. */
const ourDatabases = /^(ledger|service|limits)\.db(-wal|-shm|-journal|\.before-v\d+|\.checked)?$/;
const ourOthers =
  /^(blobs|checks|workspaces|locks|queue|reserve|sources|agent\.key|control\.sock|\.doctor-[\w-]+|refused-options\.json(\.[\w-]+\.partial)?)$/;
const isOurName = (name: string) => ourDatabases.test(name) || ourOthers.test(name);

export interface DataFolderOptions {
  /** The user of this process; undefined if the system has no user ids. */
  uid?: number | undefined;
  /** Whether a name at the top of the folder is one of ours. */
  isOurs?: (name: string) => boolean;
}

/**
 * Creates a data folder if it does not exist, and closes it to other users. Throws `DATA_FOLDER_OPEN`, an
 * input error, if other users could still read it, and if it is open and holds files that are not ours; the
 * folder stays unchanged in the latter case. Throws `DATA_FOLDER_UNUSABLE` if it cannot be created.
 */
export function openDataFolder(
  folder: string,
  { uid = process.geteuid?.(), isOurs = isOurName }: DataFolderOptions = {},
): void {
  makeDataFolder(folder);
  if (uid === undefined) return;
  const { mode, uid: owner } = statSync(folder);
  if (owner !== uid && uid !== 0)
    throw refused(folder, `it belongs to the user ${owner}, and this is ${uid}`, {
      first: 'Run this as that user',
    });
  if (!(mode & others)) return;
  const names = readdirSync(folder);
  const foreign = names.find((name) => !isOurs(name));
  if (foreign !== undefined)
    throw refused(folder, `others can read it, and it holds ${foreign}, which is not Offsite's`, {
      first: closeIt(folder),
    });
  if (mode & othersWrite) for (const name of names) refuseForeign(folder, name, [uid, owner]);
  // Close the folder first: from then on, other users cannot reach what is in it.
  close(folder, 0o700);
  for (const name of names) closeEntry(join(folder, name));
}

/** Whether a folder exists, and holds something of Offsite's. */
export function isDataFolder(folder: string): boolean {
  return ['ledger.db', 'service.db', 'blobs', 'queue'].some((name) => mayExist(join(folder, name)));
}

/** Throws `NO_DATA_FOLDER`, an input error, unless {@link isDataFolder}. */
export function requireDataFolder(folder: string): void {
  if (isDataFolder(folder)) return;
  throw inputError('NO_DATA_FOLDER', `there is no data folder of Offsite at ${folder}`, {
    hint:
      'The first `offsite run` makes it. Results that are elsewhere: ' +
      'name their folder with --data-folder, OFFSITE_HOME, or dataFolder in offsite.yaml.',
  });
}

/** Whether a path exists, or cannot be looked at: then opening it says why. */
function mayExist(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return true;
  }
}

/**
 * Creates a file in a data folder that only its owner can use. A file that exists is closed to others without
 * opening it: see below.
 */
export function closedFile(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    // Opening and closing the file would free the locks that SQLite holds on it for this process (POSIX).
    closeEntry(file);
  }
}

/** Closes a database to others. The files that SQLite creates beside it get the mode of the database. */
export function closedDatabase(file: string): void {
  closedFile(file);
  for (const beside of [`${file}-wal`, `${file}-shm`]) closeEntry(beside);
}

function closeEntry(path: string): void {
  const found = lstatSync(path, { throwIfNoEntry: false });
  // A symbolic link stays: its owner made it on purpose.
  if (!found || found.isSymbolicLink() || !(found.mode & others) || process.geteuid === undefined) return;
  close(path, found.isDirectory() ? 0o700 : 0o600);
  if (found.isDirectory()) for (const name of readdirSync(path)) closeEntry(join(path, name));
}

function close(path: string, mode: number): void {
  let failure: unknown;
  try {
    chmodSync(path, mode);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EROFS') throw readOnly(path, error);
    // Only the resulting mode counts, which is checked below.
    failure = error;
  }
  // Another process may have removed it.
  const found = statSync(path, { throwIfNoEntry: false });
  if (!found || !(found.mode & others)) return;
  const why = failure === undefined ? 'its filesystem stores no modes' : messageOf(failure);
  throw refused(path, `others can read it, and it cannot be closed to them: ${why}`, {
    first: closeIt(path),
    cause: failure,
  });
}

/** Refuses a file that another user may have put into a folder that others can write to. */
function refuseForeign(folder: string, name: string, owners: readonly number[]): void {
  const found = lstatSync(join(folder, name), { throwIfNoEntry: false });
  if (!found || (owners.includes(found.uid) && !found.isSymbolicLink())) return;
  throw refused(folder, `others can write to it, and ${name} may be theirs`, {
    first: `If all in it is yours, close it to others: ${closing(folder)}`,
  });
}

const nameAnother = 'name another folder: --data-folder, OFFSITE_HOME, or dataFolder in offsite.yaml.';

function readOnly(path: string, cause: unknown): OffsiteError {
  return infrastructureError(
    'DATA_FOLDER_READ_ONLY',
    `cannot keep results in ${path}: its disk is read-only`,
    { hint: `Mount it for writing, or ${nameAnother}`, cause },
  );
}

function makeDataFolder(folder: string): void {
  try {
    makeFolder(folder, 0o700);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EROFS') throw readOnly(folder, error);
    throw infrastructureError(
      'DATA_FOLDER_UNUSABLE',
      `cannot keep results in ${folder}: the folder cannot be created: ${messageOf(error)}`,
      { hint: `Check the folders above it, or ${nameAnother}`, cause: error },
    );
  }
}

/** @param first what a user can do, besides naming another folder */
function refused(
  path: string,
  why: string,
  { first, cause }: { first: string; cause?: unknown },
): OffsiteError {
  return inputError('DATA_FOLDER_OPEN', `${path} cannot keep results: ${why}`, {
    hint: `${first}, or ${nameAnother}`,
    cause,
  });
}

function closeIt(path: string): string {
  return `Close it to others (${closing(path)})`;
}

/** A command for the user's shell. */
function closing(path: string): string {
  return `chmod go= '${path.replaceAll("'", String.raw`'\''`)}'`;
}
