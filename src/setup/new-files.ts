import { lstatSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { makeFolder } from '../base/byte-store.ts';
import { inputError } from '../base/offsite-error.ts';
import { plural } from '../text/quantities.ts';

export interface NewFile {
  /** Relative to the folder. */
  path: string;
  content: string | Uint8Array;
}

/**
 * Writes files below a folder: all, or none if one of them exists. Never writes through a link. Throws
 * `FILE_EXISTS`, an `input` error.
 *
 * @param force whether existing files are replaced
 * @param otherwise what a person can do besides that
 */
export function writeNewFiles(
  folder: string,
  files: readonly NewFile[],
  { force, otherwise }: { force: boolean; otherwise: string },
): void {
  for (const { path } of files) refuseLinks(folder, dirname(join(folder, path)));
  const existing = files.filter(({ path }) => lstatSync(join(folder, path), { throwIfNoEntry: false }));
  if (existing.length > 0 && !force) {
    const [first, ...more] = existing.map(({ path }) => path);
    const others = more.length > 0 ? ` and ${plural(more.length, 'other file')} exist` : ' exists';
    throw inputError('FILE_EXISTS', `${first}${others}; nothing was written`, {
      hint: `Replace what is there with --force, or ${otherwise}.`,
    });
  }
  for (const { path, content } of files) {
    const file = join(folder, path);
    makeFolder(dirname(file));
    // A link is replaced, and not what it leads to.
    if (force) rmSync(file, { force: true });
    writeFileSync(file, content, { flag: 'wx' });
  }
}

/** A link in the path could lead anywhere. */
function refuseLinks(root: string, folder: string): void {
  const parts = relative(root, folder).split(sep);
  for (const [index] of parts.entries()) {
    const part = join(root, ...parts.slice(0, index + 1));
    if (part === root || !lstatSync(part, { throwIfNoEntry: false })?.isSymbolicLink()) continue;
    throw inputError('FILE_EXISTS', `${part} is a link; nothing was written`, {
      hint: 'Replace the link with a folder.',
    });
  }
}
