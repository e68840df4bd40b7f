// Takes the pictures of the documents: the viewer's pages in a real Chromium, with a ledger that is made up.

import { statSync } from 'node:fs';
import { join } from 'node:path';
import { runScript } from './run-script.ts';
import { takeScreenshots } from './screenshots/take-screenshots.ts';
import { ensureBrowser } from './set-up/ensure-browser.ts';

const folder = 'docs/images';

await runScript(async (signal) => {
  await ensureBrowser(process.env, signal);
  for (const name of await takeScreenshots(folder)) {
    const kilobytes = Math.ceil(statSync(join(folder, name)).size / 1_000);
    console.log(`wrote ${folder}/${name} (${kilobytes} kB)`);
  }
  return 0;
});
