import { chmodSync, closeSync, lstatSync, mkdirSync, openSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf, OffsiteError } from '../offsite-error.ts';

/** Bits of a mode by which others than the owner reach something. */
const others = 0o077;
/** By which others could have put something there. */
const othersWrite = 0o022;

/** What Offsite keeps at the top of a data folder. */
const ourNames =
  /^((ledger|service)\.db(-wal|-shm|-journal|\.before-v\d+)?|blobs|locks|queue|reserve|agent\.key|control\.sock|\.doctor-[\w-]+)$/;

export interface DataFolderOptions {
  /** Whose this process is; undefined where the system has no such thing. */
  uid?: number | undefined;
  /** Whether a name at the top of the folder is one of ours. */
  isOurs?: (name: string) => boolean;
}

/**
 * Makes a data folder where there is none, and makes it its owner's alone. Throws `DATA_FOLDER_OPEN`, an
 * input error, where others could go on reading it, and where it holds things that are not ours: it is left
 * as it is then.
 */
export function openDataFolder(
  folder: string,
  { uid = process.geteuid?.(), isOurs = (name) => ourNames.test(name) }: DataFolderOptions = {},
): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (uid === undefined) return;
  const { mode, uid: owner } = statSync(folder);
  if (owner !== uid && uid !== 0)
    throw refused(folder, `it belongs to the user ${owner}, and this is ${uid}`);
  if (!(mode & others)) return;
  const names = readdirSync(folder);
  const foreign = names.find((name) => !isOurs(name));
  if (foreign !== undefined)
    throw refused(folder, `others can read it, and it holds ${foreign}, which is not Offsite's`);
  if (mode & othersWrite) for (const name of names) refuseForeign(folder, name, [uid, owner]);
  // The folder first: what is in it is out of reach from then on.
  close(folder, 0o700);
  for (const name of names) closeEntry(join(folder, name));
}

/**
 * A file in a data folder that is to be written, as its owner's alone. One that is there already is not
 * opened: see below.
 */
export function closedFile(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    // Closing it would free the locks that SQLite holds on it for this process, as POSIX has it.
    closeEntry(file);
  }
}

/** Those that SQLite makes have the mode of the database. */
export function closedDatabase(file: string): void {
  closedFile(file);
  for (const beside of [`${file}-wal`, `${file}-shm`]) closeEntry(beside);
}

function closeEntry(path: string): void {
  const found = lstatSync(path, { throwIfNoEntry: false });
  // A link is its owner's own doing.
  if (!found || found.isSymbolicLink() || !(found.mode & others) || process.geteuid === undefined) return;
  close(path, found.isDirectory() ? 0o700 : 0o600);
  if (found.isDirectory()) for (const name of readdirSync(path)) closeEntry(join(path, name));
}

function close(path: string, mode: number): void {
  let trouble: unknown;
  try {
    chmodSync(path, mode);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EROFS') throw readOnly(path, error);
    // What counts is whether others reach it.
    trouble = error;
  }
  // Another process may have removed it meanwhile.
  const found = statSync(path, { throwIfNoEntry: false });
  if (!found || !(found.mode & others)) return;
  const why = trouble === undefined ? 'its filesystem keeps no modes' : messageOf(trouble);
  throw refused(path, `others can read it, and it cannot be made its owner's alone: ${why}`, trouble);
}

/** Refuses what somebody else may have put into a folder that everybody could write to. */
function refuseForeign(folder: string, name: string, owners: readonly number[]): void {
  const found = lstatSync(join(folder, name), { throwIfNoEntry: false });
  if (!found || (owners.includes(found.uid) && !found.isSymbolicLink())) return;
  throw refused(folder, `others can write to it, and ${name} may be theirs`);
}

function readOnly(path: string, cause: unknown): OffsiteError {
  return new OffsiteError(`cannot keep results in ${path}: its disk is read-only`, {
    code: 'DATA_FOLDER_READ_ONLY',
    kind: 'infrastructure',
    hint: 'Mount it for writing, or name another folder: --data-folder, OFFSITE_HOME, or dataFolder in offsite.yaml.',
    cause,
  });
}

function refused(path: string, why: string, cause?: unknown): OffsiteError {
  return new OffsiteError(`${path} cannot keep results: ${why}`, {
    code: 'DATA_FOLDER_OPEN',
    kind: 'input',
    hint: 'Make it yours alone (chmod 700), or name another folder: --data-folder, OFFSITE_HOME, or dataFolder in offsite.yaml.',
    cause,
  });
}
