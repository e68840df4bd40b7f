import { statSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { takeScreenshots } from '../../scripts/screenshots/take-screenshots.ts';

/** The least bytes of a picture with text in it; a page without any has about 4,000. */
const leastBytes = 5_000;

test('each page is shown in light and dark, at three widths, and axe finds nothing', {
  timeout: 900_000,
}, async () => {
  const taken = new Map<string, string[]>();
  for await (const { page, colorScheme, width, picture, violations } of takeScreenshots()) {
    expect({ page, colorScheme, width, violations }).toEqual({ page, colorScheme, width, violations: [] });
    // A PNG begins with a signature of 8 bytes; its first chunk has its width from byte 16 on.
    expect(picture.toString('latin1', 1, 4)).toBe('PNG');
    expect(picture.readUInt32BE(16)).toBe(width);
    expect(picture.byteLength).toBeGreaterThan(leastBytes);
    taken.set(page, [...(taken.get(page) ?? []), `${width} ${colorScheme}`]);
  }
  const all = [390, 1280, 2560].flatMap((width) => [`${width} light`, `${width} dark`]);
  for (const page of ['batches', 'batch', 'compare', 'trial', 'help', 'empty', 'no-access', 'exported'])
    expect(taken.get(page)).toEqual(all);
  expect([...taken.values()].every((each) => each.length === all.length)).toBe(true);
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
