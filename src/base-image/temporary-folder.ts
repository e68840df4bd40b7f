import { chmod, mkdtemp, readdir, readFile, rm, stat, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { OffsiteError } from '../offsite-error.ts';

export interface TemporaryFolder extends AsyncDisposable {
  path: string;
}

/** Linux's magic number of tmpfs, from statfs(2). */
const tmpfsType = 0x01021994;

const prefix = 'offsite-base-image-';
const abandonedAfterMs = 24 * 60 * 60 * 1000;

/**
 * Makes a folder for unpacking a whole system: on a real disk, as memory would be short, with `neededBytes`
 * free. Disposing of it removes it, unless something is still mounted inside: then it throws rather than
 * delete what belongs to the host.
 */
export async function temporaryFolder(neededBytes: number): Promise<TemporaryFolder> {
  const parent = await roomyFolder(neededBytes);
  await removeAbandoned(parent);
  const path = await mkdtemp(join(parent, prefix));
  // The user _apt reads what apt fetched there.
  await chmod(path, 0o755);
  return { path, [Symbol.asyncDispose]: () => removeUnlessMounted(path) };
}

/** A process that was killed could not remove its folder; nothing takes a day to build. */
async function removeAbandoned(parent: string): Promise<void> {
  for (const name of await readdir(parent)) {
    if (!name.startsWith(prefix)) continue;
    const folder = join(parent, name);
    const { mtimeMs } = await stat(folder);
    if (Date.now() - mtimeMs > abandonedAfterMs) await removeUnlessMounted(folder);
  }
}

async function removeUnlessMounted(folder: string): Promise<void> {
  const mounted = await mountsBelow(folder);
  if (mounted.length > 0) {
    throw new OffsiteError(`Left ${folder} behind: ${mounted.join(', ')} is still mounted inside it.`, {
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
    const disk = await statfs(path).catch(() => undefined); // no such folder: the next one
    if (disk === undefined) continue;
    const free = disk.bavail * disk.bsize;
    if (disk.type !== tmpfsType && free >= neededBytes) return path;
    seen.push(`${path} (${disk.type === tmpfsType ? 'in memory' : `${Math.round(free / 1e6)} MB free`})`);
  }
  throw new OffsiteError(
    `No folder to unpack the base image in: it takes ${neededBytes / 1e6} MB on a disk, and there is ${seen.join(', ')}.`,
    {
      code: 'BASE_IMAGE_NO_ROOM',
      kind: 'infrastructure',
      hint: 'Free some disk space, or point TMPDIR to a disk that has room.',
    },
  );
}

async function mountsBelow(folder: string): Promise<string[]> {
  const table = await readFile('/proc/self/mounts', 'utf8');
  const points = table.split('\n').map((line) => line.split(' ')[1] ?? '');
  return points.filter((point) => point.startsWith(`${folder}/`));
}
