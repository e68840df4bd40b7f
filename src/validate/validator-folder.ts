import type { NewEntry } from '../engine/archive/entries.ts';
import { users } from './users.ts';

const { uid, gid } = users.validator;

/**
 * The folder of a validator, for its user to read and nobody to write: root's, and its group's to look into.
 * Within it a home that stays empty, and a folder for temporary files, which alone is the user's own.
 */
export function validatorFolder(folder: string): NewEntry[] {
  return [
    // The work may be called with a file of it, which is opened to it then; what it is not told of it can
    // neither list nor read.
    { path: folder, folder: true, mode: 0o751, gid },
    { path: homeOf(folder), folder: true, mode: 0o550, gid },
    { path: temporaryOf(folder), folder: true, mode: 0o700, uid, gid },
  ];
}

export function ownFile(path: string, content: string | Buffer, mode = 0o640): NewEntry {
  return { path, content, mode, gid };
}

/**
 * Where a validator's own programs keep what is theirs. No startup file of a user lies in an empty home;
 * Python finds its modules beside the program, and none in the working folder, which is the agent's.
 */
export function ownFolders(folder: string): Record<string, string> {
  return {
    HOME: homeOf(folder),
    TMPDIR: temporaryOf(folder),
    XDG_CACHE_HOME: temporaryOf(folder),
    npm_config_cache: `${temporaryOf(folder)}/npm`,
    PYTHONNOUSERSITE: '1',
    PYTHONSAFEPATH: '1',
    PYTHONPATH: folder,
    PYTHONDONTWRITEBYTECODE: '1',
  };
}

function homeOf(folder: string): string {
  return `${folder}/.home`;
}

function temporaryOf(folder: string): string {
  return `${folder}/.temporary`;
}
