import { readFileSync } from 'node:fs';
import { chmod, mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { inputError, type OffsiteError } from '../base/offsite-error.ts';
import { parseForeignJson } from '../base/parse-json.ts';
import { fleetContexts, fleetStorage } from '../bounds/fleet.ts';
import type { PlannedBuild } from '../suite/environment.ts';
import { unchangedContext } from '../suite/load-environment.ts';
import { buildsOf, type PlannedCase, type SuitePlan } from '../suite/plan.ts';
import type { FleetStorage } from './storage/storage.ts';
import { hashOf, Sha256 } from './storage/storage.ts';

/** Build contexts on their way to workers: each file is a content of the storage, and a list names them. */

const Path = z
  .string()
  .max(4096)
  .refine((path) => path.split('/').every((part) => part !== '' && part !== '.' && part !== '..'))
  .refine((path) => !path.includes('\0'));
const mode = z.int().min(0).max(0o7777);
const List = z
  .array(
    z.discriminatedUnion('type', [
      z.object({ path: Path, type: z.literal('file'), mode, sha256: Sha256 }),
      z.object({ path: Path, type: z.literal('folder'), mode }),
      z.object({ path: Path, type: z.literal('symlink'), linkTarget: z.string().max(4096) }),
    ]),
  )
  .max(fleetContexts.count.entries);
type List = z.infer<typeof List>;

/**
 * Puts the contexts of a plan into the storage. Resolves with the hash of each context's list, by the hash of
 * what the context holds. Throws `FLEET_CONTEXT_CHANGED` and `FLEET_CONTEXT_REFUSED`.
 */
export async function putContexts(plan: SuitePlan, storage: FleetStorage): Promise<Record<string, string>> {
  const lists: Record<string, string> = {};
  for (const build of buildsOf(plan)) {
    const { hash } = build.context;
    lists[hash] ??= await putContext(build, storage);
  }
  return lists;
}

async function putContext(build: PlannedBuild, storage: FleetStorage): Promise<string> {
  const { folder } = build.context;
  const entries = unchangedContext(build);
  if (!entries) throw refused('CHANGED', `${build.place}: the build context has changed since it was read`);
  const { count, bytes } = fleetContexts;
  const size = entries.reduce((sum, entry) => sum + entry.size, 0);
  if (entries.length > count.entries || size > bytes.all) {
    const most = `${count.entries} files and folders, or ${bytes.all / 1024 ** 2} MiB`;
    throw refused('REFUSED', `${build.place}: a build context for a fleet may not have more than ${most}`);
  }
  const list: List = [];
  for (const { path, type, mode, linkTarget = '' } of entries) {
    if (type === 'folder') list.push({ path, type, mode });
    else if (type === 'symlink') list.push({ path, type, linkTarget });
    else {
      const content = readFileSync(join(folder, path));
      const sha256 = hashOf(content);
      await storage.put(sha256, content);
      list.push({ path, type, mode, sha256 });
    }
  }
  const content = Buffer.from(JSON.stringify(list));
  const sha256 = hashOf(content);
  await storage.put(sha256, content);
  return sha256;
}

/** The contexts that a worker has unpacked, in a folder of its own. */
export class Contexts {
  readonly #folder: string;
  readonly #storage: FleetStorage;
  readonly #kept = new Map<string, Promise<void>>();

  /** @param folder contexts of earlier processes are in it; {@link clear} removes them */
  constructor(folder: string, storage: FleetStorage) {
    this.#folder = folder;
    this.#storage = storage;
  }

  async clear(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }

  /** Where the context with this hash is, or will be. */
  folderOf(hash: string): string {
    return join(this.#folder, Sha256.parse(hash));
  }

  /**
   * Unpacks the contexts that a case needs and this worker does not have. The build itself checks their
   * hashes.
   *
   * @param lists the hash of each context's list
   */
  async bring(planned: PlannedCase, lists: Readonly<Record<string, string>>): Promise<void> {
    for (const { context } of buildsOf({ cases: [planned] })) {
      const { hash } = context;
      const list = lists[hash];
      if (list === undefined) throw refused('REFUSED', `the plan has no list for the build context ${hash}`);
      const unpacked = this.#kept.get(hash) ?? this.#unpack(hash, list);
      this.#kept.delete(hash);
      this.#kept.set(hash, unpacked);
      unpacked.catch(() => this.#kept.delete(hash));
      await unpacked;
    }
    for (const [oldest] of this.#kept) {
      if (this.#kept.size <= fleetContexts.count.kept) break;
      this.#kept.delete(oldest);
      await rm(this.folderOf(oldest), { recursive: true, force: true });
    }
  }

  async #unpack(hash: string, sha256: string): Promise<void> {
    const storage = this.#storage;
    const list = listIn(await storage.get(sha256, fleetStorage.bytes.document));
    const folder = this.folderOf(hash);
    const partial = `${folder}.partial`;
    await rm(partial, { recursive: true, force: true });
    await mkdir(partial, { recursive: true, mode: 0o700 });
    let bytes = 0;
    for (const entry of list) {
      const path = join(partial, entry.path);
      await mkdir(entry.type === 'folder' ? path : dirname(path), { recursive: true });
      if (entry.type !== 'file') continue;
      const content = await storage.get(entry.sha256);
      bytes += content.length;
      if (bytes > fleetContexts.bytes.all) throw refused('REFUSED', `the build context ${hash} is too large`);
      await writeFile(path, content, { flag: 'wx' });
    }
    // Links come last, so that nothing is written through one. Modes are set for inner folders first.
    for (const entry of list.toReversed()) {
      const path = join(partial, entry.path);
      if (entry.type === 'symlink') await symlink(entry.linkTarget, path);
      else await chmod(path, entry.mode);
    }
    await rm(folder, { recursive: true, force: true });
    await rename(partial, folder);
  }
}

/** Throws `FLEET_CONTEXT_REFUSED` for a list that names a path twice, or one below a file or a link. */
function listIn(content: Buffer): List {
  const parsed = List.safeParse(parseForeignJson(content.toString('utf8')));
  if (!parsed.success) throw refused('REFUSED', 'the list of a build context cannot be read');
  const types = new Map<string, string>();
  for (const { path, type } of parsed.data) {
    if (types.has(path)) throw refused('REFUSED', `the list of a build context names ${path} twice`);
    types.set(path, type);
  }
  for (const path of types.keys()) {
    for (let above = dirname(path); above !== '.'; above = dirname(above)) {
      const type = types.get(above);
      if (type !== undefined && type !== 'folder')
        throw refused('REFUSED', `the list of a build context has ${path} below a ${type}`);
    }
  }
  return parsed.data;
}

function refused(code: 'CHANGED' | 'REFUSED', message: string): OffsiteError {
  return inputError(`FLEET_CONTEXT_${code}`, message, {
    hint:
      code === 'CHANGED'
        ? 'Run the suite again.'
        : 'Name what the build does not need in .dockerignore, or push the image to a registry.',
  });
}
