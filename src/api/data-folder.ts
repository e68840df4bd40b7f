import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { infrastructureError, messageOf, OffsiteError } from '../base/offsite-error.ts';
import { openDataFolder } from '../ledger/data-folder.ts';
import type { Config } from '../suite/config-file.ts';
import { type Printable, text } from '../text/printable.ts';

/** Bytes that must be free before a batch starts: enough for its databases and the results of some trials. */
const neededBytes = 32 * 1024 ** 2;

const hint =
  'Free some space or name another folder: --data-folder, OFFSITE_HOME, or dataFolder in offsite.yaml.';

/**
 * The folder for this machine's results: from the flag, `OFFSITE_HOME` or the configuration, else the user's
 * data folder.
 */
export function dataFolderOf(
  flag: string | undefined,
  config: Partial<Pick<Config, 'dataFolder'>>,
  env: NodeJS.ProcessEnv,
): string {
  const chosen = flag ?? env.OFFSITE_HOME ?? config.dataFolder;
  if (chosen) return resolve(chosen);
  return join(env.XDG_DATA_HOME || join(homedir(), '.local', 'share'), 'offsite');
}

/** Says so if the data folder lies in the workspace of a CI job, which runners empty. */
export function emptiedText(dataFolder: string, env: NodeJS.ProcessEnv): Printable | undefined {
  const isIn = (workspace: string) => {
    const way = relative(workspace, dataFolder);
    return way.split(sep)[0] !== '..' && !isAbsolute(way);
  };
  if (![env.GITHUB_WORKSPACE, env.CI_PROJECT_DIR].some((one) => one && isIn(one))) return undefined;
  return text`the data folder ${dataFolder} lies in the workspace of this CI job, which runners empty: name one outside it (OFFSITE_HOME), or what it keeps may be lost`;
}

/**
 * Throws if the data folder cannot be used or created, or if its disk has too little space for results. Does
 * not create it: a command that ends over its input leaves nothing behind. Returns the free bytes.
 */
export function requireRoom(dataFolder: string): number {
  const free = freeBytes(dataFolder);
  if (free >= neededBytes) return free;
  const mebibytes = (bytes: number) => `${Math.floor(bytes / 1024 ** 2)} MiB`;
  const found = `${mebibytes(free)} are free, and a start needs ${mebibytes(neededBytes)}`;
  throw infrastructureError('DISK_FULL', `the disk of ${dataFolder} is full: ${found}`, { hint });
}

function freeBytes(folder: string): number {
  try {
    const above = nearestThatExists(folder);
    // If the folder cannot be created, openDataFolder() throws with the reason.
    if (above === folder || !canHoldFolders(above)) openDataFolder(folder);
    const { blocks, bavail, bsize } = statfsSync(above);
    // A file system such as /proc has a size of 0, and is not full: openDataFolder() throws the real reason.
    if (blocks === 0) openDataFolder(folder);
    return bavail * bsize;
  } catch (error) {
    if (error instanceof OffsiteError) throw error;
    throw infrastructureError(
      'DATA_FOLDER_UNUSABLE',
      `cannot keep results in ${folder}: ${messageOf(error)}`,
      { hint, cause: error },
    );
  }
}

function nearestThatExists(folder: string): string {
  return existsSync(folder) || dirname(folder) === folder ? folder : nearestThatExists(dirname(folder));
}

function canHoldFolders(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
    return statSync(folder).isDirectory();
  } catch {
    return false;
  }
}
