import { isUtf8 } from 'node:buffer';

/** Checks that bytes which arrive in chunks are UTF-8, wherever a character is cut. */
export class Utf8Check {
  /** The beginning of a character, at most three bytes. */
  #begun: Buffer = Buffer.alloc(0);

  /** Whether the bytes so far can be the beginning of UTF-8. */
  accepts(chunk: Uint8Array): boolean {
    let rest = chunk;
    while (this.#begun.length > 0 && rest.length > 0) {
      if (!continues(rest[0])) return false;
      this.#begun = Buffer.concat([this.#begun, rest.subarray(0, 1)]);
      rest = rest.subarray(1);
      if (isUtf8(this.#begun)) this.#begun = Buffer.alloc(0);
      else if (this.#begun.length >= lengthOf(this.#begun[0])) return false;
    }
    const cut = rest.length - begunAtEnd(rest);
    if (cut < rest.length) this.#begun = Buffer.from(rest.subarray(cut));
    return isUtf8(rest.subarray(0, cut));
  }
}

/** Whether a byte is within a character, after its first one. */
function continues(byte = 0): boolean {
  return byte >= 0x80 && byte < 0xc0;
}

/** How many bytes a character has by its first byte. */
function lengthOf(byte = 0): number {
  if (byte >= 0xf0) return 4;
  return byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
}

/** How many bytes at the end of a chunk begin a character that continues in the next one. */
function begunAtEnd(chunk: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, chunk.length); back += 1) {
    const byte = chunk[chunk.length - back] as number;
    if (byte < 0x80) return 0;
    if (byte >= 0xc0) return lengthOf(byte) > back ? back : 0;
  }
  return 0;
}
