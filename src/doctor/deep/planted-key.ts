import { randomBytes } from 'node:crypto';
import type { Dirent } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { Redactor } from '../../redaction/redactor.ts';

/** The variable that the suites' `offsite.yaml` names for a model's key. */
export const keyVariable = 'OFFSITE_HOSTILE_KEY';

/** A key that opens nothing. The suites' agents look for its beginning. */
export function newPlantedKey(): string {
  return `sk-offsite-hostile-${randomBytes(16).toString('hex')}`;
}

/** Whether the bytes contain the key in any encoding that we know. */
export function holdsKey(bytes: Buffer, key: string): boolean {
  return new Redactor([key]).find(bytes) !== undefined;
}

/** The files below the folder, by their paths in it, that contain the key in any encoding that we know. */
export async function filesWithKey(folder: string, key: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const found: string[] = [];
  for (const entry of entries) {
    const path = join(entry.parentPath, entry.name);
    if (entry.name.includes(key) || (await holds(entry, path, key))) found.push(relative(folder, path));
  }
  return found;
}

async function holds(entry: Dirent, path: string, key: string): Promise<boolean> {
  if (!entry.isFile()) return false;
  try {
    return holdsKey(await readFile(path), key);
  } catch (error) {
    // A database removes its log when it is closed.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}
