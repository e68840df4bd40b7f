/** Parts of the ELF files of Offsite's own, for 64-bit little-endian machines. */

export const headerBytes = 64;
const segmentBytes = 56;
/** What the kernel maps is a whole number of these, at most. */
export const page = 0x10000;

export const segmentTypes = { load: 1, dynamic: 2, stack: 0x6474e551 } as const;
export const readable = 4;
export const writable = 2;
export const executable = 1;

export interface Segment {
  type: number;
  flags: number;
  /** Its offset in the file. */
  from: number;
  /** Its address in memory. */
  to: number;
  bytes: number;
}

interface Headers {
  /** The machine's number in ELF files. */
  machine: number;
  kind: 'program' | 'shared object';
  /** The address where a program begins; default: none. */
  entry?: number;
  segments: readonly Segment[];
}

/** Writes the file's header and the table of its segments to its beginning. */
export function writeHeaders(file: Buffer, { machine, kind, entry = 0, segments }: Headers): void {
  // 64 bits, little-endian, version 1.
  Buffer.from('7f454c46020101', 'hex').copy(file);
  file.writeUInt16LE(kind === 'program' ? 2 : 3, 16);
  file.writeUInt16LE(machine, 18);
  file.writeUInt32LE(1, 20);
  file.writeBigUInt64LE(BigInt(entry), 24);
  file.writeBigUInt64LE(BigInt(headerBytes), 32);
  file.writeUInt16LE(headerBytes, 52);
  file.writeUInt16LE(segmentBytes, 54);
  file.writeUInt16LE(segments.length, 56);
  for (const [index, { type, flags, from, to, bytes }] of segments.entries()) {
    const start = headerBytes + index * segmentBytes;
    file.writeUInt32LE(type, start);
    file.writeUInt32LE(flags, start + 4);
    const alignment = type === segmentTypes.load ? page : 8;
    for (const [field, value] of [from, to, to, bytes, bytes, alignment].entries())
      file.writeBigUInt64LE(BigInt(value), start + 8 + field * 8);
  }
}
