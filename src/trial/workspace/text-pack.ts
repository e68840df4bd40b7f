import { randomUUID } from 'node:crypto';
import { closeSync, ftruncateSync, openSync, readSync, statfsSync, unlinkSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { workspaceFiles } from '../../bounds/sandbox.ts';

/**
 * Texts of prepared workspaces, by the sha256 of their content, so that a diff can show what a changed file
 * was before. They are in one file without a name, which the system removes when this process ends. What the
 * disk has no room for is not kept.
 */
export class TextPack implements Disposable {
  readonly #places = new Map<string, { at: number; length: number }>();
  readonly #binaries = new Set<string>();
  #file: number | undefined;
  #end = 0;
  /** Bytes that it may have: other programs use the same disk. */
  #room = workspaceFiles.bytes.textsBefore;
  #isFull = false;

  /** Remembers that a content is not text. */
  addBinary(sha256: string): void {
    this.#binaries.add(sha256);
  }

  isBinary(sha256: string): boolean {
    return this.#binaries.has(sha256);
  }

  put(sha256: string, content: Buffer): void {
    const length = content.byteLength;
    if (this.#isFull || this.#places.has(sha256)) return;
    try {
      this.#file ??= this.#open();
      if (this.#end + length > this.#room) return;
      writeSync(this.#file, content, 0, length, this.#end);
    } catch {
      this.#isFull = true;
      if (this.#file !== undefined) ftruncateSync(this.#file, this.#end);
      return;
    }
    this.#places.set(sha256, { at: this.#end, length });
    this.#end += length;
  }

  get(sha256: string): Buffer | undefined {
    const place = this.#places.get(sha256);
    if (place === undefined || this.#file === undefined) return undefined;
    const content = Buffer.alloc(place.length);
    return readSync(this.#file, content, 0, place.length, place.at) === place.length ? content : undefined;
  }

  #open(): number {
    const { bavail, bsize } = statfsSync(tmpdir());
    this.#room = Math.min(this.#room, (bavail * bsize) / 4);
    return unnamedFile();
  }

  [Symbol.dispose](): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
    this.#places.clear();
  }
}

function unnamedFile(): number {
  const path = join(tmpdir(), `offsite-texts-${randomUUID()}`);
  const file = openSync(path, 'wx+', 0o600);
  unlinkSync(path);
  return file;
}
