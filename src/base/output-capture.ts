import { ByteStore } from './byte-store.ts';

/** The bytes that are kept of one stream. */
export interface CapturedOutput {
  /** The bytes kept: all of them or, when truncated, the head followed directly by the tail. */
  bytes: Buffer;
  /** The same as text. Invalid UTF-8 shows as U+FFFD; a line says where and how many bytes were cut. */
  text: string;
  truncated: boolean;
  /** Bytes the process wrote, kept or not. */
  totalBytes: number;
}

/**
 * Keeps the beginning and the end of a stream, half of `capBytes` each, and counts the rest. The beginning
 * and the end matter most in a long output.
 */
export class OutputCapture {
  readonly #headCap: number;
  readonly #tailCap: number;
  readonly #head = new ByteStore();
  /** A ring, allocated when the head is full; `#tailAt` is where the next byte goes. */
  #tail: Buffer | undefined;
  #tailAt = 0;
  #tailBytes = 0;
  #totalBytes = 0;

  constructor(capBytes: number) {
    this.#headCap = Math.ceil(capBytes / 2);
    this.#tailCap = Math.floor(capBytes / 2);
  }

  push(bytes: Buffer): void {
    this.#totalBytes += bytes.length;
    const taken = Math.min(bytes.length, this.#headCap - this.#head.size);
    if (taken > 0) this.#head.add(bytes.subarray(0, taken));
    if (taken < bytes.length) this.#pushTail(bytes.subarray(taken));
  }

  result(): CapturedOutput {
    const head = this.#head.copy();
    const tail = this.#tailInOrder();
    const bytes = Buffer.concat([head, tail]);
    const cut = this.#totalBytes - bytes.length;
    const text =
      cut === 0
        ? decode(bytes)
        : `${decode(head, 'cut-end')}\n[... ${cut} bytes cut ...]\n${decode(withoutCutStart(tail))}`;
    return { bytes, text, truncated: cut > 0, totalBytes: this.#totalBytes };
  }

  #pushTail(bytes: Buffer): void {
    if (this.#tailCap === 0) return;
    this.#tail ??= Buffer.allocUnsafe(this.#tailCap);
    const kept = bytes.length > this.#tailCap ? bytes.subarray(bytes.length - this.#tailCap) : bytes;
    const first = Math.min(kept.length, this.#tailCap - this.#tailAt);
    kept.copy(this.#tail, this.#tailAt, 0, first);
    kept.copy(this.#tail, 0, first);
    this.#tailAt = (this.#tailAt + kept.length) % this.#tailCap;
    this.#tailBytes = Math.min(this.#tailCap, this.#tailBytes + kept.length);
  }

  #tailInOrder(): Buffer {
    if (this.#tail === undefined) return Buffer.alloc(0);
    if (this.#tailBytes < this.#tailCap) return this.#tail.subarray(0, this.#tailBytes);
    return Buffer.concat([this.#tail.subarray(this.#tailAt), this.#tail.subarray(0, this.#tailAt)]);
  }
}

/** With `cut-end`, a character that lost its last bytes at the cut is left out. */
function decode(bytes: Buffer, end: 'complete' | 'cut-end' = 'complete'): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes, { stream: end === 'cut-end' });
}

/** Drops the continuation bytes (at most three) of a character whose start was cut away. */
function withoutCutStart(bytes: Buffer): Buffer {
  let start = 0;
  while (start < 3 && start < bytes.length && ((bytes[start] ?? 0) & 0xc0) === 0x80) start += 1;
  return bytes.subarray(start);
}
