import { createHash, randomBytes } from 'node:crypto';
import { constants, existsSync } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, opendir, rename, rm } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { z } from 'zod';
import { infrastructureError, inputError, messageOf, type OffsiteError } from '../../base/offsite-error.ts';
import { parseForeignJson } from '../../base/parse-json.ts';
import { fleetStorage } from '../../bounds/fleet.ts';

export const Sha256 = z.string().regex(/^[0-9a-f]{64}$/);

/** One result in the index of a batch. `record` is the hash of the record, as JSON. */
const IndexedResult = z.object({
  run: z.string().max(fleetStorage.bytes.name),
  ordinal: z.int().nonnegative(),
  record: Sha256,
});
export type IndexedResult = z.infer<typeof IndexedResult>;

/**
 * `batches`: the document of each batch that a fleet was given. `reruns`: the document of each run that a
 * rerun added to such a batch, under its {@link rerunName}. `workers`: what each worker offers.
 */
type NoteKind = 'batches' | 'reruns' | 'workers';

export function rerunName(batch: string, run: string): string {
  return JSON.stringify([batch, run]);
}

/** What a storage needs of a folder or a bucket. Every operation can be repeated. */
export interface StoragePlace {
  has(path: string): Promise<boolean>;
  /** Undefined if it does not exist. Throws `FLEET_CONTENT_DAMAGED` if it has more bytes. */
  read(path: string, most: number): Promise<Buffer | undefined>;
  /** Writes a file as a whole, or not at all. */
  write(path: string, content: Uint8Array, sha256: string): Promise<void>;
  /** The paths of the files in a folder; none if it does not exist. */
  list(folder: string): AsyncIterable<string>;
  /** A path, for people. */
  named(path: string): string;
}

export type FleetStorage = ReturnType<typeof storageIn>;

/**
 * What the machines of a fleet share: contents under their SHA-256 (`contents/ab/abcd…`), for each batch an
 * index of its results (`results/<batch>/<trial>`), and notes (`workers/<name>`). Hashes are 64 lower-case
 * hexadecimal digits.
 */
export function storageIn(place: StoragePlace) {
  const pathOf = (sha256: string) => `contents/${sha256.slice(0, 2)}/${Sha256.parse(sha256)}`;
  // Ids come from the service and may hold anything, so their hashes name the files.
  const indexOf = (batch: string) => `results/${hashOf(batch)}`;
  const noteOf = (kind: NoteKind, name: string) => `${kind}/${hashOf(name)}.json`;
  const has = (sha256: string) => place.has(pathOf(sha256));
  const writeJson = (path: string, value: unknown) => {
    const text = JSON.stringify(value);
    return place.write(path, Buffer.from(text), hashOf(text));
  };
  const readJson = async (path: string): Promise<unknown> => {
    const content = await place.read(path, fleetStorage.bytes.result);
    if (!content) return undefined;
    try {
      return parseForeignJson(content.toString('utf8'));
    } catch (error) {
      throw damaged(place.named(path), messageOf(error));
    }
  };
  return {
    has,
    /** Stores a content that the caller has hashed. */
    async put(sha256: string, content: Uint8Array): Promise<void> {
      if (!(await has(sha256))) await place.write(pathOf(sha256), content, sha256);
    },
    /**
     * A content of at most the given number of bytes, checked against its hash. Throws
     * `FLEET_CONTENT_MISSING` and `FLEET_CONTENT_DAMAGED`.
     */
    async get(sha256: string, most: number = fleetStorage.bytes.content): Promise<Buffer> {
      const path = pathOf(sha256);
      const content = await place.read(path, most);
      if (!content) throw missing(`${place.named(path)} does not exist`);
      if (hashOf(content) === sha256) return content;
      throw damaged(place.named(path), 'its hash does not match');
    },
    /** Adds a result to the index of a batch, or replaces it. */
    async addResult(batch: string, result: IndexedResult): Promise<void> {
      await writeJson(`${indexOf(batch)}/${hashOf(`${result.run}/${result.ordinal}`)}.json`, result);
    },
    /** The index of a batch, in no order. */
    async *results(batch: string): AsyncGenerator<IndexedResult> {
      for await (const path of place.list(indexOf(batch))) {
        if (!path.endsWith('.json')) continue;
        const { data } = IndexedResult.safeParse(await readJson(path));
        if (!data) throw damaged(place.named(path), 'it is not the result of a trial');
        yield data;
      }
    },
    /** Keeps a note under a name, in place of the one before. */
    async putNote(kind: NoteKind, name: string, note: unknown): Promise<void> {
      await writeJson(noteOf(kind, name), note);
    },
    /** The note under a name, unchecked JSON; undefined if there is none. */
    note: (kind: NoteKind, name: string): Promise<unknown> => readJson(noteOf(kind, name)),
  };
}

export function hashOf(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}

export function damaged(place: string, why: string): OffsiteError {
  return infrastructureError('FLEET_CONTENT_DAMAGED', `${place} is damaged: ${why}`, {
    hint: 'Remove it from the storage. Whoever wrote it can write it again.',
  });
}

export function missing(message: string, cause?: unknown): OffsiteError {
  return infrastructureError('FLEET_CONTENT_MISSING', message, {
    hint: 'Check that the storage is mounted, and is the same for the whole fleet.',
    cause,
  });
}

/**
 * A storage in a folder that all machines mount. A file is written beside its place, synced and renamed, so a
 * file with its final name is complete.
 *
 * @throws `FLEET_STORAGE_UNUSABLE` if the folder does not exist: it may not be mounted
 */
export function folderStorage(folder: string): FleetStorage {
  if (!existsSync(folder)) {
    throw inputError('FLEET_STORAGE_UNUSABLE', `the fleet's storage ${folder} does not exist`, {
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
    throw infrastructureError('FLEET_STORAGE_UNUSABLE', `cannot write ${path}: ${messageOf(error)}`, {
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
