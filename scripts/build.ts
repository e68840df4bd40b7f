// Builds dist/, which the package ships: the compiled sources, the other files that they need, next to them,
// the bundled page of `offsite view`, and the bundled workflows of `offsite fleet`.

import { copyFile, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { bundleName, bundleWorkflows } from '../src/fleet/workflow-bundle.ts';
import { bundlePage } from '../src/viewer/server/bundle-page.ts';
import { runScript } from './run-script.ts';
import { runTool } from './run-tool.ts';

const folders = ['src', 'runners'];
/** The sources of the page, which is bundled. */
const page = join('src', 'viewer', 'page');

await runScript(async (signal) => {
  await rm('dist', { recursive: true, force: true });
  // Only the module that validators import has types for others.
  for (const project of ['tsconfig.build.json', 'tsconfig.types.json']) {
    const exitCode = await runTool('tsc', ['-p', project], signal);
    if (exitCode !== 0) return exitCode;
  }
  const copied = await copyOtherFiles();
  await writePage();
  await writeFile(join('dist', 'src', 'fleet', bundleName), await bundleWorkflows());
  console.log(`Built dist/. Copied beside the compiled files: ${copied.join(', ') || 'nothing'}.`);
  return 0;
});

/** Scripts, pages and data that the sources read at run time, relative to themselves. */
async function copyOtherFiles(): Promise<string[]> {
  const copied: string[] = [];
  for (const folder of folders) {
    for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile() || entry.name.endsWith('.ts') || entry.parentPath.startsWith(page)) continue;
      const path = join(entry.parentPath, entry.name);
      await mkdir(dirname(join('dist', path)), { recursive: true });
      await copyFile(path, join('dist', path));
      copied.push(path);
    }
  }
  return copied;
}

async function writePage(): Promise<void> {
  await mkdir(join('dist', page), { recursive: true });
  for (const [name, content] of await bundlePage()) await writeFile(join('dist', page, name), content);
}
