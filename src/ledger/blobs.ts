import { createHash, randomBytes } from 'node:crypto';
import { createReadStream, readFileSync, statSync, utimesSync } from 'node:fs';
import { type FileHandle, open, readdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { makeFolder } from '../base/byte-store.ts';
import { infrastructureError, messageOf, OffsiteError, systemHint } from '../base/offsite-error.ts';
import { isDeeper } from '../base/parse-json.ts';
import { foreignJson } from '../bounds/anyone.ts';
import type { Redactor } from '../redaction/redactor.ts';
import type { Reserve } from './reserve.ts';

export interface Blob {
  /** 64 lower-case hexadecimal digits. */
  sha256: string;
  byteSize: number;
}

/**
 * Stores contents under their own hash (`blobs/ab/abcd…`). A content is written to a partial file, synced,
 * then renamed, so every stored blob is complete, even after a crash.
 */
export class BlobStore {
  readonly folder: string;

  readonly #reserve: Reserve | undefined;

  readonly #redactor: Redactor | undefined;

  /**
   * @param reserve released when the disk is full
   * @param redactor removes secrets from everything that is stored; hash and size are those of the redacted
   *   content
   */
  constructor(folder: string, reserve?: Reserve, redactor?: Redactor) {
    this.folder = folder;
    this.#reserve = reserve;
    this.#redactor = redactor;
    makeFolder(folder, 0o700);
  }

  /** A name that is no hash, as records of somebody else may have, is of no file: it could lead elsewhere. */
  pathOf(sha256: string): string {
    const isHash = /^[0-9a-f]{64}$/.test(sha256);
    return isHash ? join(this.folder, sha256.slice(0, 2), sha256) : join(this.folder, 'no-hash', 'no-file');
  }

  /**
   * Stores content, streaming. Throws the `infrastructure` error `BLOB_NOT_WRITTEN` if it cannot be written,
   * for example because the disk is full.
   */
  put(given: Uint8Array | AsyncIterable<Uint8Array>): Promise<Blob> {
    return this.#keep(this.#redacted(given));
  }

  async #keep(content: Uint8Array | AsyncIterable<Uint8Array>): Promise<Blob> {
    const known = content instanceof Uint8Array ? this.#kept(content) : undefined;
    if (known) return known;
    const partial = join(this.folder, `${partialPrefix}${randomBytes(8).toString('hex')}`);
    try {
      const blob = await this.#write(partial, content instanceof Uint8Array ? [content] : content);
      const target = this.pathOf(blob.sha256);
      // A failing disk cut a stored blob of another size short, so the new content replaces it.
      if (this.stat(blob.sha256)?.byteSize === blob.byteSize) {
        await rm(partial);
        this.#touch(blob.sha256);
        return blob;
      }
      await this.#withRoom(async () => {
        makeFolder(dirname(target), 0o700);
        await rename(partial, target);
      });
      await syncFolder(dirname(target));
      return blob;
    } catch (error) {
      await rm(partial, { force: true });
      throw infrastructureError(
        'BLOB_NOT_WRITTEN',
        `cannot store a result in ${this.folder}: ${messageOf(error)}`,
        { hint: systemHint(error, 'Check that the folder exists and that its disk works.'), cause: error },
      );
    }
  }

  /** The blob of a content, if it is already stored: many runs have the same setup. */
  #kept(content: Uint8Array): Blob | undefined {
    const sha256 = createHash('sha256').update(content).digest('hex');
    const byteSize = content.byteLength;
    if (this.stat(sha256)?.byteSize !== byteSize) return undefined;
    this.#touch(sha256);
    return { sha256, byteSize };
  }

  #redacted(content: Uint8Array | AsyncIterable<Uint8Array>): Uint8Array | AsyncIterable<Uint8Array> {
    if (!this.#redactor) return content;
    return content instanceof Uint8Array ? this.#redactor.whole(content) : this.#redactor.bytes(content);
  }

  /** Stores a value as JSON. Resolves with the blob's hash. */
  async putJson(value: unknown): Promise<string> {
    const { blob, store } = this.json(value);
    await store();
    return blob.sha256;
  }

  /** The blob of a value as JSON before it is stored, for what names it and is stored beside it. */
  json(value: unknown): { blob: Blob; store: () => Promise<Blob> } {
    const content = Buffer.from(this.#redactor?.json(value) ?? JSON.stringify(value));
    const sha256 = createHash('sha256').update(content).digest('hex');
    return { blob: { sha256, byteSize: content.byteLength }, store: () => this.#keep(content) };
  }

  /** The content of a blob, checked against its hash. Throws `BLOB_MISSING` or `BLOB_DAMAGED`. */
  read(sha256: string): Buffer {
    const content = this.#readFile(sha256);
    if (createHash('sha256').update(content).digest('hex') !== sha256) {
      throw infrastructureError(
        'BLOB_DAMAGED',
        `the stored blob ${this.pathOf(sha256)} is damaged: its content has another hash`,
        { hint: damageHint },
      );
    }
    return content;
  }

  readJson(sha256: string): unknown {
    return JSON.parse(this.read(sha256).toString('utf8'));
  }

  /**
   * A JSON document for people, without the keys that are known now but were not when it was stored. Cut
   * texts only after this call, because half a key would not be found. Throws as {@link read} does.
   */
  readClean(sha256: string): unknown {
    const text = this.read(sha256).toString('utf8');
    const value: unknown = JSON.parse(text);
    // The code that reads the value refuses one that is nested deeper.
    if (isDeeper(value, foreignJson.count.recordLevels)) return value;
    return this.#redactor?.find(text) ? JSON.parse(this.#redactor.json(value)) : value;
  }

  /** Does the same as {@link readClean} for any content; undefined if it is missing or damaged. */
  tryReadClean(sha256: string): Buffer | undefined {
    const content = this.tryRead(sha256);
    return content && this.#redactor ? Buffer.from(this.#redactor.whole(content)) : content;
  }

  /** The content of a blob; undefined if it is missing or damaged. */
  tryRead(sha256: string): Buffer | undefined {
    try {
      return this.read(sha256);
    } catch (error) {
      if (error instanceof OffsiteError) return undefined;
      throw error;
    }
  }

  /** Reads a blob as a stream, so it may have any size, and compares its hash. */
  async verify(sha256: string): Promise<'whole' | 'damaged' | 'missing'> {
    const hash = createHash('sha256');
    try {
      for await (const chunk of createReadStream(this.pathOf(sha256))) hash.update(chunk);
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'missing' : 'damaged';
    }
    return hash.digest('hex') === sha256 ? 'whole' : 'damaged';
  }

  /**
   * A blob's size in bytes and when it was last put in epoch milliseconds; undefined if it does not exist.
   */
  stat(sha256: string): { byteSize: number; putAt: number } | undefined {
    const found = statSync(this.pathOf(sha256), { throwIfNoEntry: false });
    return found && { byteSize: found.size, putAt: found.mtimeMs };
  }

  /** All blobs, and the partial files that a crash left. */
  async list(): Promise<{ blobs: Set<string>; partials: string[] }> {
    const blobs = new Set<string>();
    const partials: string[] = [];
    for (const name of await readdir(this.folder)) {
      if (name.startsWith(partialPrefix)) partials.push(join(this.folder, name));
      else for (const sha256 of await readdir(join(this.folder, name))) blobs.add(sha256);
    }
    return { blobs, partials };
  }

  async remove(sha256: string): Promise<void> {
    await rm(this.pathOf(sha256), { force: true });
  }

  /** Makes a blob look new, because `offsite data prune` removes old blobs that nothing refers to. */
  #touch(sha256: string): void {
    const now = new Date();
    utimesSync(this.pathOf(sha256), now, now);
  }

  #readFile(sha256: string): Buffer {
    try {
      return readFileSync(this.pathOf(sha256));
    } catch (error) {
      const missing = (error as NodeJS.ErrnoException).code === 'ENOENT';
      const what = missing ? 'is missing' : `cannot be read: ${messageOf(error)}`;
      throw infrastructureError(
        missing ? 'BLOB_MISSING' : 'BLOB_DAMAGED',
        `the stored blob ${this.pathOf(sha256)} ${what}`,
        { hint: damageHint, cause: error },
      );
    }
  }

  async #write(file: string, content: Iterable<Uint8Array> | AsyncIterable<Uint8Array>): Promise<Blob> {
    await using handle: FileHandle = await this.#withRoom(() => open(file, 'wx', 0o600));
    const hash = createHash('sha256');
    let byteSize = 0;
    for await (const chunk of content) {
      hash.update(chunk);
      const position = byteSize;
      await this.#withRoom(() => writeAt(handle, chunk, position));
      byteSize += chunk.byteLength;
    }
    await this.#withRoom(() => handle.sync());
    return { sha256: hash.digest('hex'), byteSize };
  }

  #withRoom<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.#reserve ? this.#reserve.lend(work, isFull) : work();
  }
}

function isFull(thrown: unknown): boolean {
  return (thrown as NodeJS.ErrnoException).code === 'ENOSPC';
}

/** Writes all of a chunk at a position, so that a failed write can be repeated. */
async function writeAt(handle: FileHandle, chunk: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < chunk.byteLength; ) {
    const { bytesWritten } = await handle.write(chunk, done, chunk.byteLength - done, position + done);
    done += bytesWritten;
  }
}

const partialPrefix = 'partial-';
const damageHint = 'Check the other blobs with `offsite data check`. A backup may still have this one.';

/** A rename is durable only after its folder is synced. */
async function syncFolder(folder: string): Promise<void> {
  await using handle = await open(folder, 'r');
  await handle.sync();
}
