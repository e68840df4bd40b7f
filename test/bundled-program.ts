import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { bundleProgram } from '../scripts/bundle-program.ts';

const root = join(import.meta.dirname, '..');
const cache = join(root, 'node_modules', '.cache', 'offsite-program');

/** Milliseconds. Bundles that no run has used for this time are removed. */
const keptFor = 24 * 60 * 60 * 1000;

/**
 * Bundles the command line before the tests, laid out as in the package: `bin` starts what is in `dist`.
 * Tests start some thousand commands, and a command takes half the time if it starts from the bundle.
 * Without vitest, tests start the sources.
 */
export default async function bundleOnce(): Promise<void> {
  const sources = JSON.stringify(pathToFileURL(`${root}/`).href);
  const { files } = await bundleProgram(sources, 'ts');
  const starter = join('bin', 'offsite.mjs');
  const laidOut = new Map([...files].map(([path, contents]) => [join('dist', path), contents]));
  laidOut.set(starter, await readFile(join(root, starter)));
  const hash = createHash('sha256');
  for (const [path, contents] of laidOut) hash.update(`${path}\0${contents.byteLength}\0`).update(contents);
  const folder = join(cache, hash.digest('hex').slice(0, 16));
  if (!existsSync(folder)) await writeAtOnce(folder, laidOut);
  await utimes(folder, new Date(), new Date());
  process.env.OFFSITE_TEST_PROGRAM = join(folder, starter);
  for (const name of await readdir(cache)) {
    const other = await stat(join(cache, name)).catch(() => undefined);
    if (other && Date.now() - other.mtimeMs > keptFor)
      await rm(join(cache, name), { recursive: true, force: true });
  }
}

/** Several runs may write the same folder. */
async function writeAtOnce(folder: string, files: Map<string, Uint8Array>): Promise<void> {
  const partial = `${folder}.${process.pid}.partial`;
  for (const [path, contents] of files) {
    await mkdir(dirname(join(partial, path)), { recursive: true });
    await writeFile(join(partial, path), contents);
  }
  // Below `node_modules`, Node would look into each file for what kind of module it is.
  await writeFile(join(partial, 'package.json'), '{ "type": "module" }\n');
  await rename(partial, folder).catch(async (error: NodeJS.ErrnoException) => {
    await rm(partial, { recursive: true, force: true });
    if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error;
  });
}
