import { randomBytes } from 'node:crypto';
import { constants, existsSync } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, opendir, rename, rm } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { messageOf, OffsiteError } from '../../base/offsite-error.ts';
import { fleetStorage } from '../../bounds/fleet.ts';
import { damaged, hashOf, noteIn, resultIn, Sha256 } from './contents.ts';
import type { FleetStorage, IndexedResult, NoteKind } from './storage.ts';

/**
 * A storage in a folder that all machines mount: `contents/ab/abcd…`, `results/<batch>/<trial>`, and notes
 * such as `workers/<name>`. A file is written beside its place, synced and renamed, so a file with its final
 * name is complete.
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
  const pathOf = (sha256: string) => join(folder, 'contents', sha256.slice(0, 2), Sha256.parse(sha256));
  // Ids come from the service and may hold anything, so their hashes name the files.
  const indexOf = (batch: string) => join(folder, 'results', hashOf(batch));
  const noteOf = (kind: NoteKind, name: string) => join(folder, kind, `${hashOf(name)}.json`);
  return {
    has: async (sha256) => existsSync(pathOf(sha256)),
    async put(sha256, content) {
      if (!existsSync(pathOf(sha256))) await write(folder, pathOf(sha256), content);
    },
    async get(sha256, most = fleetStorage.bytes.content) {
      const content = await read(folder, pathOf(sha256), most);
      if (hashOf(content) === sha256) return content;
      throw damaged(pathOf(sha256), 'its hash does not match');
    },
    async addResult(batch, result) {
      const name = hashOf(`${result.run}/${result.ordinal}`);
      await write(folder, join(indexOf(batch), `${name}.json`), Buffer.from(JSON.stringify(result)));
    },
    async *results(batch): AsyncGenerator<IndexedResult> {
      if (!existsSync(indexOf(batch))) return;
      await requireFolders(folder, indexOf(batch));
      for await (const { name } of await opendir(indexOf(batch))) {
        if (!name.endsWith('.json')) continue;
        const path = join(indexOf(batch), name);
        yield resultIn(await read(folder, path, fleetStorage.bytes.result), path);
      }
    },
    async putNote(kind, name, note) {
      await write(folder, noteOf(kind, name), Buffer.from(JSON.stringify(note)));
    },
    async note(kind, name) {
      const path = noteOf(kind, name);
      if (!existsSync(path)) return undefined;
      return noteIn(await read(folder, path, fleetStorage.bytes.result), path);
    },
  };
}

/**
 * Reads a regular file. What others put in its place (a link, a pipe, a device) is neither followed nor
 * awaited.
 */
async function read(folder: string, path: string, most: number): Promise<Buffer> {
  let size = 0;
  try {
    await requireFolders(folder, dirname(path));
    await using file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const stats = await file.stat();
    if (!stats.isFile()) throw new Error('it is not a regular file');
    ({ size } = stats);
    if (size <= most) return await whole(file, size);
  } catch (error) {
    throw unusable(`cannot read ${path}: ${messageOf(error)}`, 'FLEET_CONTENT_MISSING', error);
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
    throw unusable(`cannot write ${path}: ${messageOf(error)}`, 'FLEET_STORAGE_UNUSABLE', error);
  }
}

/** Throws unless each part of the path from the storage to a folder in it is a folder, and not a link. */
async function requireFolders(storage: string, folder: string, missing?: 'make'): Promise<void> {
  let path = storage;
  for (const name of relative(storage, folder).split(sep)) {
    path = join(path, name);
    if (missing === 'make') await mkdir(path).catch(unlessThere);
    if (!(await lstat(path)).isDirectory()) throw new Error(`${path} is not a folder`);
  }
}

function unlessThere(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST') throw error;
}

function unusable(message: string, code: string, cause?: unknown): OffsiteError {
  const hint = 'Check that the storage is mounted, has space left, and is the same for the whole fleet.';
  return new OffsiteError(message, { code, kind: 'infrastructure', hint, cause });
}
