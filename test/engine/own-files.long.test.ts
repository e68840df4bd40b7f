import { mkdtempDisposable, readdir, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');

test('the files in the repository are what their sources compile to, byte for byte', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'offsite-own-files-'));
  await execa(process.execPath, ['scripts/compile.ts', folder.path], { cwd: root });
  const written = await readdir(folder.path, { recursive: true, withFileTypes: true });
  const paths = written
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name));
  expect(paths).toHaveLength(4);
  for (const path of paths) {
    const kept = join(root, 'src/engine/own-files', path.slice(folder.path.length));
    expect((await readFile(path)).equals(await readFile(kept)), path).toBe(true);
  }
}, 900_000);
