import { existsSync, mkdtempDisposableSync, readFileSync, writeFileSync } from 'node:fs';
import { glob } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { execa } from 'execa';
import { expect, test } from 'vitest';
import { referencePages } from '../../scripts/reference/pages.ts';
import { deadLinks } from '../../scripts/site/dead-links.ts';
import { groups } from '../../site/.vitepress/pages.ts';
import { anchorsOf, linksOf, pages } from './blocks.ts';

const root = join(import.meta.dirname, '../..');

test('the site is built without a network, and all of its links lead somewhere', async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'offsite-site-'));
  const built = await execa(process.execPath, ['scripts/docs.ts', folder.path], { cwd: root, reject: false });
  expect(built.exitCode, built.stdout + built.stderr).toBe(0);
  expect(await deadLinks(folder.path)).toEqual([]);
  // The browser gets everything from the site itself.
  for await (const path of glob('**/*.{html,css}', { cwd: folder.path }))
    expect(readFileSync(join(folder.path, path), 'utf8')).not.toMatch(
      /(src|rel="\w+" href)="https?:|url\(http/,
    );
});

test('a link that leads nowhere is found: to a page, an anchor, an image', async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'offsite-links-'));
  const page =
    '<h1 id="top">A</h1><a href="./b.html#top">b</a><a href="#top"></a><a href="https://a.example">c</a>';
  writeFileSync(join(folder.path, 'a.html'), page);
  writeFileSync(
    join(folder.path, 'b.html'),
    '<a href="a.html#top"></a><a href="a.html#no"></a><a href="c.html"></a><a ' +
      'href="#no"></a><img src="no.png">',
  );
  const dead = [
    'a.html: ./b.html#top',
    ...['a.html#no', 'c.html', '#no', 'no.png'].map((link) => `b.html: ${link}`),
  ];
  expect((await deadLinks(folder.path)).toSorted()).toEqual(dead.toSorted());
});

test('links of pages that are read without the site lead to files and headings', () => {
  const dead = pages.flatMap((page) =>
    linksOf(page).filter((link) => {
      if (/^[a-z]+:/.test(link)) return false;
      const [path = '', anchor] = link.split('#');
      const target = path === '' ? page : join(dirname(page), path);
      if (!existsSync(join(root, target))) return true;
      return anchor !== undefined && !anchorsOf(target).includes(anchor);
    }),
  );
  expect(dead).toEqual([]);
  expect(linksOf('README.md').length).toBeGreaterThan(20);
});

test('every page of docs/ is in the menu of the site, once', async () => {
  const files = await Array.fromAsync(glob('**/*.md', { cwd: join(root, 'docs') }));
  const links = groups.flatMap(({ items }) => items.map(({ link }) => link));
  expect(links.toSorted()).toEqual(files.map((path) => `/${path.replace(/(index)?\.md$/, '')}`).toSorted());
});

test('the reference is what the code says now (else: npm run generate)', async () => {
  for (const [path, text] of Object.entries(await referencePages()))
    expect(readFileSync(join(root, path), 'utf8'), path).toBe(text);
});

test('every key, option and argument of the reference is described', async () => {
  for (const [path, text] of Object.entries(await referencePages()))
    expect(
      text.split('\n').filter((line) => /^\|.*\| +\|$/.test(line)),
      path,
    ).toEqual([]);
});
