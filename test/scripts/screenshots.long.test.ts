import { statSync } from 'node:fs';
import { mkdtempDisposable, readdir, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { takeScreenshots } from '../../scripts/screenshots/take-screenshots.ts';

/** The least bytes of a picture with text in it; an empty page has about 4,000. */
const leastBytes = 40_000;

test('pictures of each page are taken in light and dark, in the size that the documents expect', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'offsite-screenshots-'));
  const names = await takeScreenshots(folder.path);
  const pages = ['batch', 'trial', 'changes', 'compare'];
  expect(names.toSorted()).toEqual(pages.flatMap((page) => [`${page}-dark.png`, `${page}-light.png`]).sort());
  for (const name of names) {
    const picture = await readFile(join(folder.path, name));
    // A PNG begins with a signature of 8 bytes; its first chunk has width and height from byte 16 on.
    expect(picture.toString('latin1', 1, 4)).toBe('PNG');
    expect([picture.readUInt32BE(16), picture.readUInt32BE(20)]).toEqual([1280, 800]);
    expect(picture.byteLength).toBeGreaterThan(leastBytes);
  }
});

test('documents show only pictures that the command takes, and these are small', async () => {
  const root = new URL('../../', import.meta.url);
  for (const [document, folder] of [
    ['README.md', 'docs/images/'],
    ['docs/seeing.md', 'images/'],
  ] as const) {
    const text = await readFile(new URL(document, root), 'utf8');
    const shown = [...text.matchAll(/(?:src|srcset)="([^"]+)"/g)].map(([, path = '']) => path);
    expect(shown.length).toBeGreaterThan(0);
    for (const path of shown)
      expect(path).toMatch(new RegExp(`^${folder}(batch|trial|changes|compare)-(light|dark)\\.png$`));
  }
  const sizes = (await readdir(new URL('docs/images/', root))).map(
    (name) => statSync(new URL(`docs/images/${name}`, root)).size,
  );
  // They are in the package.
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(1_000_000);
});
