import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitepress';
import { markdown } from './markdown.ts';
import { groups } from './pages.ts';

/** Files of `docs/` that pages link to as they are. */
const files = ['openapi.json'];

/**
 * The site of `docs/`. Its addresses are relative and its fonts are the system's, so it works in any
 * folder of any server and asks no other host for anything.
 */
export default defineConfig({
  title: 'Offsite',
  description: 'Trials of coding agents on your own machine, in sealed sandboxes',
  srcDir: '../docs',
  outDir: '.vitepress/dist',
  cacheDir: '../node_modules/.cache/vitepress',
  base: './',
  // scripts/site/dead-links.ts checks all links, also those to anchors and images.
  ignoreDeadLinks: true,
  markdown,
  themeConfig: {
    nav: groups.map(({ text, items: [first] }) => ({ text, link: first.link })),
    sidebar: groups,
    outline: [2, 3],
    search: { provider: 'local' },
  },
  buildEnd: ({ srcDir, outDir }) => {
    for (const name of files) cpSync(join(srcDir, name), join(outDir, name));
  },
});
