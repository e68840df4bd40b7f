import { BadFile } from '../../src/suite/file-issues.ts';
import { folder } from '../each-folder.ts';

/** What is wrong with the files that `load` reads. */
export function problemsOf(load: () => unknown): string {
  try {
    load();
  } catch (error) {
    if (error instanceof BadFile) return error.message.replaceAll(`${folder}/`, '');
    throw error;
  }
  throw new Error('the suite was accepted');
}
