import { writeFileSync } from 'node:fs';
import { messageOf, OffsiteError } from '../offsite-error.ts';

/** Writes a file that an option names. Throws an `input` error. */
export function writeText(file: string, text: string): void {
  try {
    writeFileSync(file, text);
  } catch (error) {
    throw new OffsiteError(`cannot write ${file}: ${messageOf(error)}`, {
      code: 'FILE_NOT_WRITTEN',
      kind: 'input',
      hint: 'The results are still stored and reported; `offsite runs CASE` shows them.',
      cause: error,
    });
  }
}
