import type { NewEntry } from '../engine/archive/entries.ts';
import { users } from './users.ts';

const { uid, gid } = users.validator;

/**
 * The entries of a validator's folder. Root owns it, the validator's group may read it, and nobody else may
 * write to it. It contains a home folder that stays empty, and a folder for temporary files, which is the
 * only one that the user owns.
 */
export function validatorFolder(folder: string): NewEntry[] {
  return [
    // The work may be started with the path of a file in this folder, which is then opened to it. It can
    // neither list the folder nor read other files.
    { path: folder, folder: true, mode: 0o751, gid },
    { path: homeOf(folder), folder: true, mode: 0o550, gid },
    { path: temporaryOf(folder), folder: true, mode: 0o700, uid, gid },
  ];
}

export function ownFile(path: string, content: string | Buffer, mode = 0o640): NewEntry {
  return { path, content, mode, gid };
}

/**
 * Folders for the validator's own programs. The home folder is empty, so it has no startup files. Python
 * finds modules beside the program, and none in the working folder, which belongs to the agent.
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
