import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, open, opendir, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fleetStorage } from '../../bounds/fleet.ts';
import { messageOf, OffsiteError } from '../../offsite-error.ts';
import { parseForeignJson } from '../../parse-json.ts';
import { hashOf, Indexed, Sha256 } from './contents.ts';
import type { FleetStorage, IndexedResult, NoteKind } from './storage.ts';

/**
 * A storage in a folder that all machines mount: `contents/ab/abcd…`, `results/<batch>/<trial>`, and notes such
 * as `workers/<name>`. A file is written beside its place, synced and renamed, so what has its final name is
 * whole.
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
      if (!existsSync(pathOf(sha256))) await write(pathOf(sha256), content);
    },
    async get(sha256) {
      const content = await read(pathOf(sha256), fleetStorage.bytes.content);
      if (hashOf(content) === sha256) return content;
      throw unusable(`the content ${sha256} in ${folder} is damaged`, 'FLEET_CONTENT_DAMAGED');
    },
    async addResult(batch, result) {
      const name = hashOf(`${result.run}/${result.ordinal}`);
      await write(join(indexOf(batch), `${name}.json`), Buffer.from(JSON.stringify(result)));
    },
    async *results(batch): AsyncGenerator<IndexedResult> {
      if (!existsSync(indexOf(batch))) return;
      for await (const { name } of await opendir(indexOf(batch))) {
        if (!name.endsWith('.json')) continue;
        const path = join(indexOf(batch), name);
        const text = (await read(path, fleetStorage.bytes.result)).toString('utf8');
        const parsed = Indexed.safeParse(parseForeignJson(text));
        if (!parsed.success) throw unusable(`${path} is no result of a trial`, 'FLEET_CONTENT_DAMAGED');
        yield parsed.data;
      }
    },
    async putNote(kind, name, note) {
      await write(noteOf(kind, name), Buffer.from(JSON.stringify(note)));
    },
    async note(kind, name) {
      const path = noteOf(kind, name);
      if (!existsSync(path)) return undefined;
      return parseForeignJson((await read(path, fleetStorage.bytes.result)).toString('utf8'));
    },
  };
}

async function read(path: string, most: number): Promise<Buffer> {
  try {
    const { size } = await stat(path);
    if (size <= most) return await readFile(path);
  } catch (error) {
    throw unusable(`cannot read ${path}: ${messageOf(error)}`, 'FLEET_CONTENT_MISSING', error);
  }
  throw unusable(`${path} is larger than ${most} bytes`, 'FLEET_CONTENT_DAMAGED');
}

async function write(path: string, content: Uint8Array): Promise<void> {
  const partial = `${path}.${randomBytes(8).toString('hex')}.partial`;
  try {
    await mkdir(dirname(path), { recursive: true });
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

function unusable(message: string, code: string, cause?: unknown): OffsiteError {
  const hint = 'Check that the storage is mounted, has space left, and is the same for the whole fleet.';
  return new OffsiteError(message, { code, kind: 'infrastructure', hint, cause });
}
