import type { NewEntry } from '../engine/archive/entries.ts';

/**
 * The users of a grading sandbox. Neither is root. Neither may signal, trace or read the other's processes.
 * Only the work's user may write to the workspace. The ids are lower than 65,536, because rootless engines
 * map no others.
 */
export const users = {
  /** Runs the validator. It owns only a folder for temporary files. */
  validator: { uid: 64_201, gid: 64_201 },
  /** Runs what the agent left: `nobody`. Every Linux has a name for this id, which some programs require. */
  work: { uid: 65_534, gid: 65_534 },
} as const;

/** The user in the form that an engine takes. */
export function execUser({ uid, gid }: { uid: number; gid: number }): string {
  return `${uid}:${gid}`;
}

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
