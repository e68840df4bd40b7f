// Builds dist/, which the package ships: the compiled sources, and the other files that they need, next to
// them.

import { copyFile, mkdir, readdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { runScript } from './run-script.ts';
import { runTool } from './run-tool.ts';

const folders = ['src', 'runners'];

await runScript(async (signal) => {
  await rm('dist', { recursive: true, force: true });
  const exitCode = await runTool('tsc', ['-p', 'tsconfig.build.json'], signal);
  if (exitCode !== 0) return exitCode;
  const copied = await copyOtherFiles();
  console.log(`Built dist/. Copied beside the compiled files: ${copied.join(', ') || 'nothing'}.`);
  return 0;
});

/** Scripts, pages and data that the sources read at run time, relative to themselves. */
async function copyOtherFiles(): Promise<string[]> {
  const copied: string[] = [];
  for (const folder of folders) {
    for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile() || entry.name.endsWith('.ts')) continue;
      const path = join(entry.parentPath, entry.name);
      await mkdir(dirname(join('dist', path)), { recursive: true });
      await copyFile(path, join('dist', path));
      copied.push(path);
    }
  }
  return copied;
}
