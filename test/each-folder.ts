import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach } from 'vitest';

/** A folder of the test that runs, in files that call {@link eachFolder}. */
export let folder: string;

/**
 * Gives each test of a file a folder of its own. Call it in the file: files share processes, in which a module
 * is read once, so what it does when it is read is done for the first file alone.
 */
export function eachFolder(): void {
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'offsite-test-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));
}

/** Writes a file in the folder, with the folders above it, and returns its path. */
export function write(name: string, content: string): string {
  const file = join(folder, name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
  return file;
}
