import { createReadStream } from 'node:fs';
import { posix } from 'node:path';
import { messageOf, OffsiteError } from '../base/offsite-error.ts';
import { parseForeignJson } from '../base/parse-json.ts';
import { evidenceBundles } from '../bounds/anyone.ts';
import { MiB } from '../bounds/channel.ts';
import { type TarEntry, tarEntries } from '../engine/archive/tar-entries.ts';
import { withinReserve } from '../engine/container/disk-space.ts';
import type { Engine } from '../engine/engine.ts';
import { parentLabel, volumeLabel } from '../engine/owned-objects.ts';
import type { ListedImage } from '../engine/port/images.ts';
import { snapshotRepository } from '../engine/snapshot/kept-snapshots.ts';
import { relayImage } from '../trial/prepare/model-port.ts';
import type { OpenedEvidence } from './open-evidence.ts';

/** The images of opened evidence that the engine has now. Disposing removes those that it did not have. */
export interface LoadedImages extends AsyncDisposable {
  ids: ReadonlySet<string>;
  /** Why images are not there, one line each. */
  problems: string[];
}

/**
 * Loads the images that somebody else put into evidence. An archive that would give an image a name, or
 * expand to more than its own size, is not given to the engine. An image counts only under its id, which an
 * engine computes from its content.
 */
export async function loadImages(
  archives: OpenedEvidence['images'],
  engine: Engine,
  signal: AbortSignal,
): Promise<LoadedImages> {
  const { images, remove } = engine.port;
  const ids = new Set<string>();
  const problems: string[] = [];
  const added: string[] = [];
  for (const { imageIds, file } of archives) {
    try {
      const missing: string[] = [];
      for (const id of imageIds) {
        if (isId(id) && (await images.find(id, signal))) ids.add(id);
        else missing.push(id);
      }
      if (missing.length === 0) continue;
      await checkImages(file, signal);
      await beginOnBase(engine, signal);
      const before = new Set((await images.list(signal)).map(({ id }) => id));
      // Before it loads: what is there after a failure is removed, too.
      added.push(...missing.filter(isId));
      const loaded = await withinReserve(engine, signal, (loading) =>
        images.load(createReadStream(file), loading),
      );
      // The archive may have others than it is said to have.
      added.push(...loaded.filter((id) => !before.has(id) && !added.includes(id)));
      for (const id of missing) {
        const image = isId(id) ? await images.find(id, signal) : undefined;
        // What goes with it when it is removed would be a volume of this machine.
        if (image && image.labels[volumeLabel] === undefined) {
          // Offsite removes images of its own that have no name.
          await images.tag(id, `${snapshotRepository}:evidence-${id.slice(7, 39)}`, signal);
          ids.add(id);
        } else problems.push(`the evidence has no image ${id.slice(0, 200)} that this engine can load`);
      }
    } catch (error) {
      if (signal.aborted) break;
      problems.push(`the images of the evidence are not loaded: ${messageOf(error)}`);
    }
  }
  return {
    ids,
    problems,
    async [Symbol.asyncDispose]() {
      if (added.length === 0) return;
      const all = await images.list().catch((error: unknown) => {
        if (error instanceof OffsiteError) return [];
        throw error;
      });
      let left = withChildren(added, all);
      // No image can be removed before those that were made on it, whatever the order of the list.
      for (let before = -1; left.length !== before && left.length > 0; ) {
        before = left.length;
        left = await remaining(left.toReversed());
      }
    },
  };

  /** Removes those that nothing uses, and resolves with the others. */
  async function remaining(ids: readonly string[]): Promise<string[]> {
    const kept: string[] = [];
    for (const id of ids) {
      try {
        await remove('image', id);
      } catch (error) {
        // Somebody else uses it, or the engine is gone.
        if (!(error instanceof OffsiteError)) throw error;
        kept.push(id);
      }
    }
    return kept;
  }
}

/** With the snapshots that were made on them. */
function withChildren(ids: readonly string[], all: readonly ListedImage[]): string[] {
  const found = [...ids];
  for (const parent of found)
    for (const { id, parentId, labels } of all)
      if ((parentId === parent || labels[parentLabel] === parent) && !found.includes(id)) found.push(id);
  return found;
}

/**
 * An Offsite process has a container on its engine for as long as it runs, of the image that it used first:
 * that must be none of those that are removed before it ends.
 */
async function beginOnBase(engine: Engine, signal: AbortSignal): Promise<void> {
  const base = await engine.findImage(relayImage, signal);
  if (!base) return;
  const least = { memoryBytes: 64 * MiB, cpus: 1, pids: 16, workingDir: '/' };
  const plain = { network: 'none', security: 'compatible', imageId: base.id } as const;
  await using _ = await engine.createContainer({ ...least, ...plain }, signal);
}

function isId(name: string): boolean {
  return /^sha256:[0-9a-f]{64}$/.test(name);
}

/** Throws if an archive of images names them, or can expand. */
async function checkImages(file: string, signal: AbortSignal): Promise<void> {
  for await (const entry of tarEntries(createReadStream(file, { signal }))) {
    const { name, flag, size } = entry.header;
    // However its folders and links lead there.
    const base = posix.basename(name.toString('latin1'));
    if (base === 'repositories') throw new Error('they have names');
    const isList = base === 'manifest.json' || base === 'index.json';
    if (flag === '5') continue;
    if (flag !== '0') {
      // Engines save a layer that two images have as a link.
      if (flag !== '2' || base !== 'layer.tar') throw new Error('they are no images as an engine saves them');
      continue;
    }
    const pieces = entry.content();
    const first = (await pieces.next()).value ?? Buffer.alloc(0);
    if (isList) refuseNames(parseForeignJson((await wholeOf(first, pieces, entry)).toString('utf8')));
    else if (compressions.some((magic) => first.subarray(0, magic.length).equals(magic)))
      throw new Error('they are compressed, and nobody knows to what they expand');
    else if (size >= 512 && first[0] !== 0x7b) await checkLayer(first, pieces);
  }
}

/** Gzip, zstd, bzip2 and xz. */
const compressions = ['1f8b', '28b52ffd', '425a68', 'fd377a585a00'].map((hex) => Buffer.from(hex, 'hex'));

async function wholeOf(first: Buffer, rest: AsyncIterable<Buffer>, { header }: TarEntry): Promise<Buffer> {
  if (header.size > evidenceBundles.bytes.document) throw new Error('their list is too long');
  const pieces = [first];
  for await (const piece of rest) pieces.push(piece);
  return Buffer.concat(pieces);
}

/** The lists of Docker and of OCI name images in these members. */
function refuseNames(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [name, member] of Object.entries(value)) {
    const isName = name === 'RepoTags' || name === 'annotations';
    if (isName && member !== null && Object.keys(member as object).some((one) => /^\d+$|name/.test(one)))
      throw new Error('they have names');
    refuseNames(member);
  }
}

async function checkLayer(first: Buffer, rest: AsyncIterable<Buffer>): Promise<void> {
  async function* all() {
    yield first;
    yield* rest;
  }
  for await (const { header } of tarEntries(all()))
    if (header.sparseSize !== undefined || header.flag === 'S')
      throw new Error('a layer has a file with holes');
}
