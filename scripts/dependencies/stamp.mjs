import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Written last into node_modules, so that an interrupted install does not count. */
const stampPath = (root) => join(root, 'node_modules', '.offsite-lock-sha256');

/** Whether node_modules has what package-lock.json lists, for this platform. */
export async function isInstalled(root) {
  const [wanted, stamp] = await Promise.all([stampOf(root), textOf(stampPath(root))]);
  if (stamp !== undefined) return stamp === wanted;
  // No stamp, but the user may have run `npm ci` or `npm install`: npm records what it installed, at its very
  // end.
  if (!(await npmInstalled(root))) return false;
  await markInstalled(root);
  return true;
}

export async function markInstalled(root) {
  await writeFile(stampPath(root), await stampOf(root));
}

/**
 * A folder shared with another kind of machine has that machine's binaries: the platform is part of the
 * stamp.
 */
async function stampOf(root) {
  const lock = await readFile(join(root, 'package-lock.json'));
  return `${createHash('sha256').update(lock).digest('hex')} ${process.platform}-${process.arch}\n`;
}

async function npmInstalled(root) {
  const record = await textOf(join(root, 'node_modules', '.package-lock.json'));
  if (record === undefined) return false;
  const installed = JSON.parse(record).packages;
  const wanted = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')).packages;
  return Object.entries(wanted).every(([path, entry]) => {
    if (path === '') return true; // the project itself
    const found = installed[path];
    if (found === undefined)
      return entry.optional === true || entry.devOptional === true || entry.peer === true;
    return found.version === entry.version && found.integrity === entry.integrity;
  });
}

async function textOf(path) {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
}
