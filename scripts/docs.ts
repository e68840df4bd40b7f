// Builds the site of docs/ into site/.vitepress/dist, or into the folder that the first argument names. It
// fails if a link leads nowhere.

import { resolve } from 'node:path';
import { runScript } from './run-script.ts';
import { runTool } from './run-tool.ts';
import { deadLinks } from './site/dead-links.ts';

await runScript(async (signal) => {
  const folder = resolve(process.argv[2] ?? 'site/.vitepress/dist');
  const exitCode = await runTool('vitepress', ['build', 'site', '--outDir', folder], signal);
  if (exitCode !== 0) return exitCode;
  const dead = await deadLinks(folder);
  for (const link of dead) console.error(`leads nowhere: ${link}`);
  console.log(`The site is in ${folder}`);
  return dead.length === 0 ? 0 : 1;
});
