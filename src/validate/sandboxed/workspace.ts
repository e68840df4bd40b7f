import { readdir, readFile, realpath } from 'node:fs/promises';
import { matchesGlob, relative, resolve, sep } from 'node:path';

/**
 * Reads a file of the workspace. What a link leads out of it to is not the agent's work, but may be what the
 * validator expects of it.
 */
export async function readInside(workspace: string, path: string): Promise<string> {
  const [root, file] = await Promise.all([realpath(workspace), realpath(resolve(workspace, path))]);
  if (!file.startsWith(`${root}${sep}`)) throw new Error(`${path} leads out of the workspace`);
  return readFile(file, 'utf8');
}

/** Paths of files below the workspace, sorted, hidden ones too; links are named, not followed. */
export async function filesInside(workspace: string): Promise<string[]> {
  const entries = await readdir(workspace, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => !entry.isDirectory())
    .map((entry) => relative(workspace, resolve(entry.parentPath, entry.name)))
    .sort();
}

/** Those that match a glob; all without one. */
export function matching(paths: readonly string[], pattern: string | undefined): string[] {
  return paths.filter((path) => pattern === undefined || matchesGlob(path, pattern));
}
