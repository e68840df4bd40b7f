/**
 * The header of a tar entry, a block of 512 bytes, in POSIX `ustar` format or GNU's variant. Names are bytes.
 */
export interface TarHeader {
  name: Buffer;
  linkName: Buffer;
  /** The type flag as a character: `0` a file, `5` a folder, `x` records about the next entry, ... */
  flag: string;
  mode: number;
  uid: number;
  gid: number;
  /** Bytes of content that follow, without padding. */
  size: number;
  /** Epoch milliseconds. */
  modifiedAt: number;
  /**
   * The length of a sparse file in GNU's format 1.0. What follows is then a map of its data, and the data
   * without the holes.
   */
  sparseSize?: number | undefined;
}

export const blockBytes = 512;

/**
 * Reads a header; undefined for the empty block that ends an archive. Throws if the block is not a header.
 */
export function readTarHeader(block: Buffer): TarHeader | undefined {
  const sum = checksum(block);
  // The checksum counts its own field as eight spaces, so this is the sum of an empty block.
  if (sum === 8 * 0x20) return undefined;
  if (sum !== numberOf(block.subarray(148, 156))) throw new Error('the archive is damaged: a wrong checksum');
  const name = textOf(block, 0, 100);
  const prefix = block.toString('latin1', 257, 263) === 'ustar\0' ? textOf(block, 345, 155) : Buffer.alloc(0);
  return {
    name: prefix.length > 0 ? Buffer.concat([prefix, Buffer.from('/'), name]) : name,
    linkName: textOf(block, 157, 100),
    // Archives from before POSIX have no flag for files.
    flag: block[156] === 0 ? '0' : String.fromCharCode(block[156] ?? 0),
    mode: numberOf(block.subarray(100, 108)) & 0o7777,
    uid: numberOf(block.subarray(108, 116)),
    gid: numberOf(block.subarray(116, 124)),
    size: numberOf(block.subarray(124, 136)),
    modifiedAt: numberOf(block.subarray(136, 148)) * 1000,
  };
}

function checksum(block: Buffer): number {
  let sum = 8 * 0x20;
  for (let at = 0; at < 148; at++) sum += block[at] ?? 0;
  for (let at = 156; at < blockBytes; at++) sum += block[at] ?? 0;
  return sum;
}

/** Bytes up to a NUL. Copied: the block is a view of a network chunk. */
function textOf(block: Buffer, start: number, length: number): Buffer {
  const field = block.subarray(start, start + length);
  const end = field.indexOf(0);
  return Buffer.from(end === -1 ? field : field.subarray(0, end));
}

/** Octal digits; for larger numbers, big-endian bytes after 0x80. */
function numberOf(field: Buffer): number {
  if (field[0] === 0x80) {
    return field.subarray(1).reduce((number, byte) => number * 256 + byte, 0);
  }
  const digits = /^[\0 ]*([0-7]*)/.exec(field.toString('latin1'))?.[1] ?? '';
  return digits === '' ? 0 : Number.parseInt(digits, 8);
}
