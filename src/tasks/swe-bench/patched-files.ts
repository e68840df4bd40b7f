import { parsePatch } from 'diff';
import { messageOf } from '../../base/offsite-error.ts';

/** The files of a patch, by their paths in the repository. */
export interface PatchedFiles {
  /** Files that exist before the patch. */
  before: string[];
  /** Files that exist after the patch. */
  after: string[];
}

/** The files of a patch as git writes it, or what is wrong with it. */
export function patchedFiles(patch: string): PatchedFiles | { problem: string } {
  const before = new Set<string>();
  const after = new Set<string>();
  try {
    for (const { oldFileName, newFileName, isCreate, isDelete } of parsePatch(patch)) {
      if (!isCreate) addTo(before, oldFileName, 'a/');
      if (!isDelete) addTo(after, newFileName, 'b/');
    }
  } catch (error) {
    return { problem: messageOf(error) };
  }
  const outside = [...before, ...after].find((path) => leadsOut(path));
  if (outside !== undefined) return { problem: `${JSON.stringify(outside)} is no file of the repository` };
  return { before: [...before], after: [...after] };
}

/**
 * A patch as git takes it. Data sets often strip patches. They then lack the last newline, and the empty line
 * that ends a binary file, or a hunk whose last line is empty. Git ignores an empty line after a whole hunk.
 */
export function wholePatch(patch: string): string {
  return patch === '' || patch.endsWith('\n') ? patch : `${patch}\n\n`;
}

function addTo(files: Set<string>, name: string | undefined, prefix: string): void {
  if (name === undefined || name === '/dev/null') return;
  files.add(name.startsWith(prefix) ? name.slice(prefix.length) : name);
}

function leadsOut(path: string): boolean {
  const parts = path.split('/');
  return path.startsWith('/') || parts.some((part) => ['', '.', '..', '.git'].includes(part));
}
