import { readdirSync, realpathSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { messageOf, OffsiteError } from '../../base/offsite-error.ts';
import { type Reach, readFile, requireWithin } from '../read-file.ts';
import { failed } from './run-git.ts';

/**
 * Throws an `input` error unless a folder is a repository and all parts of it may be read. A repository may
 * name folders elsewhere that hold its objects.
 */
export function requireLocalRepository(path: string, reach: Exclude<Reach, 'anywhere'>): void {
  /** Checks a part before anything in it is read. */
  const reached = (part: string) => {
    requireWithin(path, realPathOf(part), reach);
    return part;
  };
  try {
    const named = gitFolderOf(reached(path));
    if (named === undefined) throw failed(`${path} is not a git repository`);
    const folder = reached(named);
    const common = reached(pathIn(join(folder, 'commondir'), folder) ?? folder);
    const objects = reached(join(common, 'objects'));
    const parts = [folder, common, objects, ...alternatesOf(objects, reached, new Set())];
    for (const part of [path, ...new Set(parts.flatMap(linksBelow))]) reached(part);
  } catch (error) {
    if (error instanceof OffsiteError) throw error;
    throw unreadable(path, error);
  }
}

/** Names a missing path in plain words. */
function unreadable(path: string, error: unknown) {
  const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
  return failed(
    `cannot read ${path}: ${isMissing ? 'it, or a part of it, does not exist' : messageOf(error)}`,
  );
}

/** The links in a repository, which git follows. */
function linksBelow(folder: string): string[] {
  const entries = readdirSync(folder, { withFileTypes: true, recursive: true });
  return entries
    .filter((entry) => entry.isSymbolicLink())
    .map(({ parentPath, name }) => join(parentPath, name));
}

/** `.git` in the folder, what a file `.git` names, or the folder itself. */
function gitFolderOf(path: string): string | undefined {
  const inside = join(path, '.git');
  const stats = statSync(inside, { throwIfNoEntry: false });
  if (stats?.isFile()) {
    const [, named] = /^gitdir: (.+)$/m.exec(textOf(inside)) ?? [];
    return named === undefined ? undefined : resolve(path, named);
  }
  const folder = stats?.isDirectory() ? inside : path;
  return statSync(join(folder, 'objects'), { throwIfNoEntry: false })?.isDirectory() ||
    statSync(join(folder, 'commondir'), { throwIfNoEntry: false })?.isFile()
    ? folder
    : undefined;
}

/** The folder that a small file of a repository names. */
function pathIn(file: string, folder: string): string | undefined {
  if (!statSync(file, { throwIfNoEntry: false })?.isFile()) return undefined;
  return resolve(folder, textOf(file).trim());
}

/** The folders from which a folder of objects borrows: git's alternates, and their own alternates. */
function alternatesOf(objects: string, reached: (part: string) => string, seen: Set<string>): string[] {
  const file = join(objects, 'info', 'alternates');
  if (seen.has(objects) || !statSync(file, { throwIfNoEntry: false })?.isFile()) return [];
  seen.add(objects);
  const named = textOf(file).split('\n');
  return named
    .filter((line) => line !== '' && !line.startsWith('#'))
    .flatMap((line) => {
      const other = reached(resolve(objects, line.replace(/^"(.*)"$/, '$1')));
      return [other, ...alternatesOf(other, reached, seen)];
    });
}

function realPathOf(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    throw unreadable(path, error);
  }
}

function textOf(file: string): string {
  return readFile(file).content.toString('utf8');
}
