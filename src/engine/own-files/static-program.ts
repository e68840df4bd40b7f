import { executable, readable, segmentTypes, writable, writeHeaders } from './elf.ts';

/** A program for one kind of machine. */
export interface Machine {
  /** The machine's number in ELF files. */
  number: number;
  /** Machine code, one call of the kernel a line. It names data by {@link address} and its offset. */
  code: readonly string[];
}

interface Data {
  /** Its offset in the file. */
  at: number;
  bytes: Buffer;
}

/** Where the file is in memory. */
const address = 0x40_0000;
/** The offset of the code, after the data. */
const codeAt = 0x200;

/** The smallest program, which needs no library and no file of an image. All is in one segment, read-only. */
export function staticProgram({ number, code }: Machine, data: readonly Data[]): Buffer {
  const file = Buffer.concat([Buffer.alloc(codeAt), Buffer.from(code.join(''), 'hex')]);
  const { load, stack } = segmentTypes;
  const segments = [
    { type: load, flags: readable | executable, from: 0, to: address, bytes: file.length },
    { type: stack, flags: readable | writable, from: 0, to: 0, bytes: 0 },
  ];
  writeHeaders(file, { machine: number, kind: 'program', entry: address + codeAt, segments });
  for (const { at, bytes } of data) {
    if (at + bytes.length > codeAt) throw new RangeError(`there is no room for ${bytes.length} bytes`);
    bytes.copy(file, at);
  }
  return file;
}
