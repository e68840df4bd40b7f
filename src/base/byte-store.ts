import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/** The largest piece of a store, in bytes. */
const pieceBytes = 64 * 1024;

/** Each buffer of its own, even an empty one, is work for the garbage collector. */
const nothing = Buffer.alloc(0);

/**
 * Keeps bytes that arrive in pieces of any size. Even a piece of one byte keeps the whole buffer alive that
 * it was read with, and is a separate object, so the store copies all pieces together.
 */
export class ByteStore {
  readonly #full: Buffer[] = [];
  #last: Buffer;
  #used = 0;
  #size = 0;

  /** @param expected bytes, if that is known: then they are copied once */
  constructor(expected = 0) {
    this.#last = expected === 0 ? nothing : Buffer.allocUnsafeSlow(expected);
  }

  get size(): number {
    return this.#size;
  }

  add(bytes: Uint8Array): void {
    let rest = bytes;
    while (rest.length > 0) {
      if (this.#used === this.#last.length) this.#next(rest.length);
      const part = rest.subarray(0, this.#last.length - this.#used);
      this.#last.set(part, this.#used);
      this.#used += part.length;
      this.#size += part.length;
      rest = rest.subarray(part.length);
    }
  }

  /** All bytes as one buffer, a copy. */
  copy(): Buffer {
    const whole = Buffer.allocUnsafeSlow(this.#size);
    let at = 0;
    for (const piece of [...this.#full, this.#last.subarray(0, this.#used)]) {
      whole.set(piece, at);
      at += piece.length;
    }
    return whole;
  }

  /** All bytes as one buffer. Empties the store, so that the bytes do not exist twice for long. */
  take(): Buffer {
    const isWhole = this.#full.length === 0 && this.#used === this.#last.length;
    const whole = isWhole ? this.#last : this.copy();
    this.clear();
    return whole;
  }

  clear(): void {
    this.#full.length = 0;
    this.#last = nothing;
    this.#used = 0;
    this.#size = 0;
  }

  /** A small store gets small pieces, and often one is all. */
  #next(wanted: number): void {
    if (this.#used > 0) this.#full.push(this.#last);
    const size = Math.min(Math.max(wanted, this.#size === 0 ? 0 : 1024, this.#size), pieceBytes);
    this.#last = Buffer.allocUnsafeSlow(size);
    this.#used = 0;
  }
}

/**
 * Creates a folder with all folders above it, if it does not exist. Throws the error of the file system.
 *
 * Node's own `recursive` never returns if the file system answers "no such file" below a folder that exists,
 * as `/proc` does.
 */
export function makeFolder(folder: string, mode = 0o777): void {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return;
  const parent = dirname(folder);
  if (parent !== folder && !existsSync(parent)) makeFolder(parent, mode);
  try {
    mkdirSync(folder, { mode });
  } catch (error) {
    // Another process may have just created it.
    if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) throw error;
  }
}
