import { chmod, mkdtemp, readdir, readFile, rm, stat, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { OffsiteError } from '../offsite-error.ts';

/** Linux's magic number for tmpfs, from statfs(2). */
const tmpfsType = 0x01021994;

const prefix = 'offsite-base-image-';
const abandonedAfterMs = 24 * 60 * 60 * 1000;

/**
 * Creates a folder for unpacking a whole system, with `neededBytes` free on a real disk. Disposing removes
 * it. Also removes folders of killed processes: those older than a day, because no build takes that long.
 */
export async function temporaryFolder(neededBytes: number): Promise<AsyncDisposable & { path: string }> {
  const parent = await roomyFolder(neededBytes);
  for (const name of await readdir(parent)) {
    if (!name.startsWith(prefix)) continue;
    const { mtimeMs } = await stat(join(parent, name));
    if (Date.now() - mtimeMs > abandonedAfterMs) await remove(join(parent, name));
  }
  const path = await mkdtemp(join(parent, prefix));
  // The user _apt must be able to read the packages there.
  await chmod(path, 0o755);
  return { path, [Symbol.asyncDispose]: () => remove(path) };
}

/** Throws if something is still mounted inside, so that nothing of the host's is deleted. */
async function remove(folder: string): Promise<void> {
  const mounts = (await readFile('/proc/self/mounts', 'utf8')).split('\n').map((line) => line.split(' ')[1]);
  const inside = mounts.filter((point) => point?.startsWith(`${folder}/`));
  if (inside.length > 0) {
    throw new OffsiteError(`Left ${folder} behind: ${inside.join(', ')} is still mounted inside it.`, {
      code: 'BASE_IMAGE_FOLDER_MOUNTED',
      kind: 'infrastructure',
      hint: 'Unmount it, then remove the folder.',
    });
  }
  await rm(folder, { recursive: true, force: true, maxRetries: 3 });
}

async function roomyFolder(neededBytes: number): Promise<string> {
  const seen: string[] = [];
  for (const path of new Set(['/var/tmp', tmpdir()])) {
    const disk = await statfs(path).catch(() => undefined); // no such folder: try the next one
    if (disk === undefined) continue;
    const free = disk.bavail * disk.bsize;
    if (disk.type !== tmpfsType && free >= neededBytes) return path;
    seen.push(`${path} (${disk.type === tmpfsType ? 'in memory' : `${Math.round(free / 1e6)} MB free`})`);
  }
  throw new OffsiteError(`No disk has the ${neededBytes / 1e6} MB for the base image: ${seen.join(', ')}.`, {
    code: 'BASE_IMAGE_NO_ROOM',
    kind: 'infrastructure',
    hint: 'Free some disk space, or point TMPDIR to a disk that has room.',
  });
}
