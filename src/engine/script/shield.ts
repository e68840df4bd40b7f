/** The folder for the library in a container. Nothing else uses it. */
export const shieldFolder = '/offsite-shield';

/**
 * A shared library that makes its process unreadable to all other processes of the same user. The script's
 * programs run as the same user as the shells, and could otherwise read and change the memory of the shells
 * that report how each step ended. A process whose "dumpable" flag is off can be traced, and read in /proc,
 * only with CAP_SYS_PTRACE (prctl(2), ptrace(2)), which no sandbox has. A shell cannot set the flag itself,
 * and `exec` resets it, so the loader puts these few instructions into both shells. They work with any C
 * library, or none.
 */
export function shieldLibrary(arch: string): Buffer | undefined {
  const machine = machines[arch];
  return machine && sharedObject(machine.number, Buffer.from(machine.code, 'hex'));
}

interface Machine {
  /** The machine's number in ELF files. */
  number: number;
  /** `prctl(PR_SET_DUMPABLE, 0)` and a return. */
  code: string;
}

/** Keys are the kernel's names of architectures. */
const machines: Readonly<Record<string, Machine>> = {
  // mov eax, 157; mov edi, 4; xor esi, esi; syscall; ret
  x86_64: { number: 62, code: 'b89d000000bf0400000031f60f05c3' },
  // mov x8, 167; mov x0, 4; mov x1, 0; svc 0; ret
  aarch64: { number: 183, code: 'e81480d2800080d2010080d2010000d4c0035fd6' },
};

/**
 * Byte offsets of the parts of the file. The data is mapped one (large) page above the rest, because it must
 * be writable.
 */
const at = { hash: 0x120, symbols: 0x130, strings: 0x148, code: 0x150, dynamic: 0x200 } as const;
const page = 0x10000;
const headerBytes = 64;
const segmentBytes = 56;

const load = 1;
const dynamic = 2;
const stack = 0x6474e551;
const readable = 4;
const writable = 2;
const executable = 1;

/** The smallest ELF file that loaders take: one initializer, no symbol. */
function sharedObject(machine: number, code: Buffer): Buffer {
  const entries = [
    [4, at.hash],
    [5, at.strings],
    [6, at.symbols],
    [10, 1], // bytes of strings
    [11, 24], // bytes of a symbol
    [12, at.code], // the initializer
    [0, 0],
  ];
  const dynamicBytes = entries.length * 16;
  const file = Buffer.alloc(at.dynamic + dynamicBytes);
  writeHeader(file, machine);
  writeSegment(file, 0, {
    type: load,
    flags: readable | executable,
    from: 0,
    to: 0,
    bytes: at.code + code.length,
  });
  const data = { from: at.dynamic, to: page + at.dynamic, bytes: dynamicBytes };
  writeSegment(file, 1, { type: load, flags: readable | writable, ...data });
  writeSegment(file, 2, { type: dynamic, flags: readable | writable, ...data });
  writeSegment(file, 3, { type: stack, flags: readable | writable, from: 0, to: 0, bytes: 0 });
  // A hash table of one bucket and one symbol: the empty symbol that every table begins with.
  file.writeUInt32LE(1, at.hash);
  file.writeUInt32LE(1, at.hash + 4);
  code.copy(file, at.code);
  for (const [index, [tag = 0, value = 0]] of entries.entries()) {
    file.writeBigUInt64LE(BigInt(tag), at.dynamic + index * 16);
    file.writeBigUInt64LE(BigInt(value), at.dynamic + index * 16 + 8);
  }
  return file;
}

function writeHeader(file: Buffer, machine: number): void {
  // 64 bits, little-endian, version 1.
  Buffer.from('7f454c46020101', 'hex').copy(file);
  file.writeUInt16LE(3, 16); // a shared object
  file.writeUInt16LE(machine, 18);
  file.writeUInt32LE(1, 20);
  file.writeBigUInt64LE(BigInt(headerBytes), 32);
  file.writeUInt16LE(headerBytes, 52);
  file.writeUInt16LE(segmentBytes, 54);
  file.writeUInt16LE(4, 56);
}

interface Segment {
  type: number;
  flags: number;
  /** Offset in the file and address in memory. */
  from: number;
  to: number;
  bytes: number;
}

function writeSegment(file: Buffer, index: number, { type, flags, from, to, bytes }: Segment): void {
  const start = headerBytes + index * segmentBytes;
  file.writeUInt32LE(type, start);
  file.writeUInt32LE(flags, start + 4);
  for (const [field, value] of [from, to, to, bytes, bytes, type === load ? page : 8].entries()) {
    file.writeBigUInt64LE(BigInt(value), start + 8 + field * 8);
  }
}
