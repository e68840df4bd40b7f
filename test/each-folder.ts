import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach } from 'vitest';

/** A folder of the test that runs. Who imports this file has one for each of its tests. */
export let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'offsite-test-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Writes a file in the folder, with the folders above it, and returns its path. */
export function write(name: string, content: string): string {
  const file = join(folder, name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
  return file;
}
