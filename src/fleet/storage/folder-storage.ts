import { randomBytes } from 'node:crypto';
import { constants, existsSync } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, opendir, rename, rm } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { messageOf, OffsiteError } from '../../base/offsite-error.ts';
import { damaged, type FleetStorage, missing, storageIn } from './storage.ts';

/**
 * A storage in a folder that all machines mount. A file is written beside its place, synced and renamed, so a
 * file with its final name is complete.
 *
 * @throws `FLEET_STORAGE_UNUSABLE` if the folder does not exist: it may not be mounted
 */
export function folderStorage(folder: string): FleetStorage {
  if (!existsSync(folder)) {
    throw new OffsiteError(`the fleet's storage ${folder} does not exist`, {
      code: 'FLEET_STORAGE_UNUSABLE',
      kind: 'input',
      hint: 'Mount it on this machine, or correct fleet.storage of offsite.yaml.',
    });
  }
  const at = (path: string) => join(folder, path);
  return storageIn({
    named: at,
    has: async (path) => existsSync(at(path)),
    read: (path, most) => read(folder, at(path), most),
    write: (path, content) => write(folder, at(path), content),
    async *list(path) {
      if (!existsSync(at(path))) return;
      await requireFolders(folder, at(path));
      for await (const { name } of await opendir(at(path))) yield join(path, name);
    },
  });
}

/**
 * Reads a regular file. What others put in its place (a link, a pipe, a device) is neither followed nor
 * awaited.
 */
async function read(folder: string, path: string, most: number): Promise<Buffer | undefined> {
  let size = 0;
  try {
    await requireFolders(folder, dirname(path));
    await using file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const stats = await file.stat();
    if (!stats.isFile()) throw new Error('it is not a regular file');
    ({ size } = stats);
    if (size <= most) return await whole(file, size);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw missing(`cannot read ${path}: ${messageOf(error)}`, error);
  }
  throw damaged(path, `it is larger than ${most} bytes`);
}

/** Reads as many bytes as a file had when it was opened, because it may never stop growing. */
async function whole(file: FileHandle, size: number): Promise<Buffer> {
  const content = Buffer.alloc(size);
  for (let at = 0; at < size; ) {
    const { bytesRead } = await file.read(content, at, size - at, at);
    if (bytesRead === 0) throw new Error('it became shorter while it was read');
    at += bytesRead;
  }
  return content;
}

async function write(folder: string, path: string, content: Uint8Array): Promise<void> {
  const partial = `${path}.${randomBytes(8).toString('hex')}.partial`;
  try {
    await requireFolders(folder, dirname(path), 'make');
    {
      await using file = await open(partial, 'wx', 0o600);
      await file.writeFile(content);
      await file.sync();
    }
    await rename(partial, path);
  } catch (error) {
    await rm(partial, { force: true });
    throw new OffsiteError(`cannot write ${path}: ${messageOf(error)}`, {
      code: 'FLEET_STORAGE_UNUSABLE',
      kind: 'infrastructure',
      hint: 'Check that the storage is mounted, has space left, and is the same for the whole fleet.',
      cause: error,
    });
  }
}

/** Throws unless each part of the path from the storage to a folder in it is a folder, and not a link. */
async function requireFolders(storage: string, folder: string, absent?: 'make'): Promise<void> {
  let path = storage;
  for (const name of relative(storage, folder).split(sep)) {
    path = join(path, name);
    if (absent === 'make') await mkdir(path).catch(unlessThere);
    if (!(await lstat(path)).isDirectory()) throw new Error(`${path} is not a folder`);
  }
}

function unlessThere(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST') throw error;
}
