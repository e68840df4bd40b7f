// Takes pictures of all the viewer's pages in a real Chromium, with a ledger that is made up: in light and
// dark, at the width of a phone, a laptop and a wall. Looks at each with axe, and renews the pictures of the
// documents.
//
//   npm run screenshots [-- FOLDER]     all pictures; without a folder, only those of the documents

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runScript } from './run-script.ts';
import { takeScreenshots } from './screenshots/take-screenshots.ts';
import { ensureBrowser } from './set-up/ensure-browser.ts';

/** The pages of which the documents show a picture, at the width of a laptop. */
const documented = ['batch', 'trial', 'changes', 'compare'];

await runScript(async (signal) => {
  const [folder] = process.argv.slice(2);
  await ensureBrowser(process.env, signal);
  let taken = 0;
  let found = 0;
  for await (const { page, colorScheme, width, picture, violations } of takeScreenshots()) {
    taken += 1;
    const files = [
      ...(folder === undefined ? [] : [join(folder, `${page}-${width}-${colorScheme}.png`)]),
      ...(documented.includes(page) && width === 1280
        ? [join('docs/images', `${page}-${colorScheme}.png`)]
        : []),
    ];
    if (folder !== undefined) await mkdir(folder, { recursive: true });
    for (const file of files) await writeFile(file, picture);
    for (const { id, nodes } of violations) {
      found += 1;
      console.log(`${page}, ${width} px, ${colorScheme}: ${id}\n  ${nodes.join('\n  ')}`);
    }
  }
  console.log(`${taken} pictures; axe found ${found === 0 ? 'nothing' : `${found} problems`}`);
  return found === 0 ? 0 : 1;
});
