import { readFile, rm } from 'node:fs/promises';

/** A file with a process id, and the program that must run under that id for the file to be valid. */
export interface ProcessFile {
  path: string;
  program: string;
}

/**
 * Removes the files whose process is gone or is another program's, and returns their paths. A killed
 * `dockerd` leaves such files, and the next one takes any live process with that id for its predecessor, or
 * for its containerd.
 */
export async function clearLeftovers(files: readonly ProcessFile[], proc = '/proc'): Promise<string[]> {
  const cleared: string[] = [];
  for (const file of files) {
    if ((await textOf(file.path)) === undefined || (await isRunning(file, proc))) continue;
    await rm(file.path, { force: true });
    cleared.push(file.path);
  }
  return cleared;
}

/** Whether the file names a process, and that process is the file's program. */
export async function isRunning(file: ProcessFile, proc = '/proc'): Promise<boolean> {
  const pid = (await textOf(file.path))?.trim() ?? '';
  if (!/^\d+$/.test(pid)) return false;
  // `1234 (dockerd) S ...`, from proc(5). A zombie (Z) has ended, but its id is taken until its parent reaps
  // it, which never happens in a container without an init process.
  const [, program, state] = (await textOf(`${proc}/${pid}/stat`))?.match(/\((.*)\) (.)/s) ?? [];
  return program === file.program && state !== 'Z' && state !== 'X';
}

async function textOf(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    // ESRCH: the process ended while its entry was read.
    if (['ENOENT', 'ENOTDIR', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? ''))
      return undefined;
    throw error;
  }
}
