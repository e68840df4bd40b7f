import { readdir, readFile, realpath } from 'node:fs/promises';
import { matchesGlob, relative, resolve, sep } from 'node:path';

/**
 * Reads a file of the workspace. Refuses a file outside the workspace: it is not the agent's work, and it may
 * hold what the validator expects.
 */
export async function readInside(workspace: string, path: string): Promise<string> {
  const [root, file] = await Promise.all([realpath(workspace), realpath(resolve(workspace, path))]);
  if (!file.startsWith(`${root}${sep}`)) throw new Error(`${path} leads out of the workspace`);
  return readFile(file, 'utf8');
}

/**
 * Paths of the files below the workspace, sorted, including hidden ones. Links are listed but not followed.
 */
export async function filesInside(workspace: string): Promise<string[]> {
  const entries = await readdir(workspace, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => !entry.isDirectory())
    .map((entry) => relative(workspace, resolve(entry.parentPath, entry.name)))
    .sort();
}

/** The paths that match a glob. Without a glob, all paths. */
export function matching(paths: readonly string[], pattern: string | undefined): string[] {
  return paths.filter((path) => pattern === undefined || matchesGlob(path, pattern));
}
