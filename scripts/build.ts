// Builds dist/, which the package ships: the bundled command line and library with all packages they use,
// what runs in sandboxes, the other files that the sources read at run time, the bundled page of
// `offsite view`, and the bundled workflows of `offsite fleet`. Another folder may be named as the argument.

import { copyFile, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { bundleName, bundleWorkflows } from '../src/fleet/workflow-bundle.ts';
import { bundlePage } from '../src/viewer/server/bundle-page.ts';
import { bundleProgram } from './bundle-program.ts';
import { runScript } from './run-script.ts';
import { runTool } from './run-tool.ts';

const outdir = process.argv[2] ?? 'dist';
const folders = ['src', 'runners'];
/** The sources of the page, which is bundled. */
const page = join('src', 'viewer', 'page');

await runScript(async (signal) => {
  await rm(outdir, { recursive: true, force: true });
  // What runs beside a validator in its sandbox, and the types of the modules that others import.
  for (const project of ['tsconfig.build.json', 'tsconfig.types.json']) {
    const exitCode = await runTool('tsc', ['-p', project, '--outDir', outdir], signal);
    if (exitCode !== 0) return exitCode;
  }
  const copied = await copyOtherFiles();
  await writeProgram();
  await writePage();
  await writeOut(join('src', 'fleet', bundleName), await bundleWorkflows());
  console.log(`Built ${outdir}/. Copied beside the compiled files: ${copied.join(', ') || 'nothing'}.`);
  return 0;
});

/** Scripts, pages and data that the sources read at run time, relative to themselves. */
async function copyOtherFiles(): Promise<string[]> {
  const copied: string[] = [];
  for (const folder of folders) {
    for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile() || entry.name.endsWith('.ts') || entry.parentPath.startsWith(page)) continue;
      const path = join(entry.parentPath, entry.name);
      await mkdir(dirname(join(outdir, path)), { recursive: true });
      await copyFile(path, join(outdir, path));
      copied.push(path);
    }
  }
  return copied;
}

async function writeProgram(): Promise<void> {
  // The bundled files are below `src/`.
  const folder = "import.meta.url.slice(0, import.meta.url.lastIndexOf('/src/') + 1)";
  const { files, licenses } = await bundleProgram(folder, 'js');
  for (const [path, contents] of files) await writeOut(path, contents);
  await writeOut('LICENSES.txt', licenses);
}

async function writePage(): Promise<void> {
  for (const [name, content] of await bundlePage()) await writeOut(join(page, name), content);
}

/** Writes a file below the output folder. */
async function writeOut(path: string, content: string | Uint8Array): Promise<void> {
  await mkdir(dirname(join(outdir, path)), { recursive: true });
  await writeFile(join(outdir, path), content);
}
