import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { type FileHandle, mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { messageOf, OffsiteError } from '../offsite-error.ts';

export interface Blob {
  /** 64 lower-case hexadecimal digits. */
  sha256: string;
  byteSize: number;
}

/**
 * Contents kept under their own hash (`blobs/ab/abcd…`): written beside, synced, then renamed, so that a blob that is there is whole,
 * also after a crash.
 */
export class BlobStore {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  }

  pathOf(sha256: string): string {
    return join(this.folder, sha256.slice(0, 2), sha256);
  }

  /** Keeps `content`, streaming; throws an `infrastructure` error where it cannot be written (for example a full disk). */
  async put(content: Uint8Array | AsyncIterable<Uint8Array>): Promise<Blob> {
    const partial = join(this.folder, `partial-${randomBytes(8).toString('hex')}`);
    try {
      const blob = await this.#write(partial, content instanceof Uint8Array ? [content] : content);
      const target = this.pathOf(blob.sha256);
      if (existsSync(target)) {
        await rm(partial);
        return blob;
      }
      await mkdir(dirname(target), { recursive: true, mode: 0o700 });
      await rename(partial, target);
      await syncFolder(dirname(target));
      return blob;
    } catch (error) {
      await rm(partial, { force: true });
      throw new OffsiteError(`cannot store a result in ${this.folder}: ${messageOf(error)}`, {
        code: 'BLOB_NOT_WRITTEN',
        kind: 'infrastructure',
        hint: 'Check that the disk is not full and the folder can be written.',
        cause: error,
      });
    }
  }

  /** The content of a blob, checked against its hash. */
  read(sha256: string): Buffer {
    const content = readFileSync(this.pathOf(sha256));
    if (createHash('sha256').update(content).digest('hex') !== sha256) {
      throw new OffsiteError(
        `the stored blob ${this.pathOf(sha256)} is damaged: its content has another hash`,
        {
          code: 'BLOB_DAMAGED',
          kind: 'infrastructure',
        },
      );
    }
    return content;
  }

  async #write(file: string, content: Iterable<Uint8Array> | AsyncIterable<Uint8Array>): Promise<Blob> {
    await using handle: FileHandle = await open(file, 'wx', 0o600);
    const hash = createHash('sha256');
    let byteSize = 0;
    for await (const chunk of content) {
      hash.update(chunk);
      byteSize += chunk.byteLength;
      await handle.writeFile(chunk);
    }
    await handle.sync();
    return { sha256: hash.digest('hex'), byteSize };
  }
}

/** A rename is durable only once its folder is. */
async function syncFolder(folder: string): Promise<void> {
  await using handle = await open(folder, 'r');
  await handle.sync();
}
