import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  openSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, resolve } from 'node:path';
import { inputError, messageOf, type OffsiteError } from '../base/offsite-error.ts';
import { shellWord } from '../text/escape.ts';

/** Writes a file that an option names. Throws an `input` error. */
export function writeText(file: string, text: string): void {
  try {
    writeFileSync(file, text);
  } catch (error) {
    throw inputError('FILE_NOT_WRITTEN', `cannot write ${file}: ${messageOf(error)}`, {
      hint: 'The results are still stored and reported; `offsite service runs CASE` shows them.',
      cause: error,
    });
  }
}

/**
 * Throws an `input` error if a file that an option names cannot be written when the results are there. A run
 * may cost much, so this is checked before it.
 */
export function requireWritable(file: string): void {
  refuseYaml(file);
  const folder = dirname(file);
  if (!existsSync(folder))
    throw notWritable(file, `there is no folder ${folder}`, `Create it: mkdir -p ${shellWord(folder)}`);
  if (statSync(file, { throwIfNoEntry: false })?.isDirectory())
    throw notWritable(file, 'it is a folder', 'Name a file in it.');
  try {
    if (existsSync(file)) accessSync(file, constants.W_OK);
    else {
      // Permissions say nothing of a read-only or a special file system.
      closeSync(openSync(file, 'wx'));
      unlinkSync(file);
    }
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    const cure = ['EACCES', 'EPERM'].includes(code) ? 'Change its permissions, or name' : 'Name';
    // The folder exists: the file system takes no file there.
    const why = code === 'ENOENT' ? `no file can be made in ${folder}` : messageOf(error);
    throw notWritable(file, why, `${cure} another file.`, error);
  }
}

/** Throws an `input` error if two options name one file: the second report would replace the first. */
export function refuseSharedFiles(files: Readonly<Record<string, string | undefined>>): void {
  const taken = new Map<string, string>();
  for (const [option, file] of Object.entries(files)) {
    if (file === undefined || file === '-') continue;
    refuseYaml(file);
    const path = resolve(file);
    const other = taken.get(path);
    // A device, such as /dev/null, takes any number of them.
    if (other !== undefined && statSync(path, { throwIfNoEntry: false })?.isFile() !== false)
      throw inputError('OPTION_CONFLICT', `${other} and ${option} both name ${file}`, {
        hint: 'Nothing was started. Give each of them a file of its own.',
      });
    taken.set(path, option);
  }
}

/** A word in the wrong place, and a report would replace the suite that was meant. */
function refuseYaml(file: string): void {
  if (/\.ya?ml$/i.test(file) && existsSync(file))
    throw notWritable(file, 'it exists, and no report is YAML', 'Name another file.');
}

function notWritable(file: string, why: string, remedy: string, cause?: unknown): OffsiteError {
  return inputError('FILE_NOT_WRITABLE', `cannot write ${file}: ${why}`, {
    hint: `Nothing was started. ${remedy}`,
    cause,
  });
}
