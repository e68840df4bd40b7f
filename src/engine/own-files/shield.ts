import { executable, page, readable, segmentTypes, writable, writeHeaders } from './elf.ts';

/**
 * A shared library that protects its process from all other processes of the same user. The script's programs
 * run as the same user as the shells that report how each step ended.
 *
 * - They could read and change the memory of the shells. A process whose "dumpable" flag is off can be
 *   traced, and read in /proc, only with CAP_SYS_PTRACE (prctl(2), ptrace(2)), which no sandbox has.
 * - They could set limits on the shells, for example so that a shell writes no file. The filter of the
 *   sandbox refuses that, but a kernel of the runtime's own, as gVisor's, does not get that filter. It does
 *   take one from inside, which all programs of the script inherit.
 *
 * A shell can do neither itself, and `exec` resets the flag, so the loader puts these few instructions into
 * both shells. They work with any C library, or none.
 */
export function shieldLibrary(arch: string): Buffer | undefined {
  const machine = machines[arch];
  if (machine === undefined) return undefined;
  const code = Buffer.concat([Buffer.from(machine.code.join(''), 'hex'), ownLimitsOnly(machine)]);
  return sharedObject(machine.number, code);
}

interface Machine {
  /** The machine's number in ELF files. */
  number: number;
  /** The kernel's number of its 64-bit interface (AUDIT_ARCH). */
  interface: number;
  /** The number of prlimit64(2). */
  prlimit: number;
  /**
   * prctl(PR_SET_DUMPABLE, 0), prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), which a filter takes,
   * prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, {13, filter}) and a return. The filter follows right after.
   */
  code: readonly string[];
}

/** Keys are the kernel's names of architectures. */
const machines: Readonly<Record<string, Machine>> = {
  x86_64: {
    number: 62,
    interface: 0xc000_003e,
    prlimit: 302,
    code: [
      'b89d000000bf0400000031f60f05', // mov eax, 157; mov edi, 4; xor esi, esi; syscall
      'b89d000000bf26000000be01000000', // mov eax, 157; mov edi, 38; mov esi, 1
      '31d24531d24531c00f05', // xor edx, edx; xor r10d, r10d; xor r8d, r8d; syscall
      '488d051a000000506a0d4889e2', // lea rax, [rip + 26]; push rax; push 13; mov rdx, rsp
      'b89d000000bf16000000be020000000f05', // mov eax, 157; mov edi, 22; mov esi, 2; syscall
      '5858c3', // pop rax; pop rax; ret
    ],
  },
  aarch64: {
    number: 183,
    interface: 0xc000_00b7,
    prlimit: 261,
    code: [
      'e81480d2800080d2010080d2010000d4', // mov x8, 167; mov x0, 4; mov x1, 0; svc 0
      'c00480d2210080d2020080d2', // mov x0, 38; mov x1, 1; mov x2, 0
      '030080d2040080d2010000d4', // mov x3, 0; mov x4, 0; svc 0
      '29010010aa0180d2ea27bfa9', // adr x9, 36; mov x10, 13; stp x10, x9, [sp, -16]!
      'c00280d2410080d2e2030091010000d4', // mov x0, 22; mov x1, 2; mov x2, sp; svc 0
      'ff430091c0035fd6', // add sp, sp, 16; ret
    ],
  },
};

/** Byte offsets in the kernel's description of a call: its number, its interface, its arguments. */
const call = { number: 0, interface: 4, process: 16, limitLow: 32, limitHigh: 36 } as const;

/**
 * A filter of 13 instructions (seccomp(2)). It refuses calls that set the limits of another process, and all
 * calls through another interface than the 64-bit one, which has other numbers.
 */
function ownLimitsOnly({ interface: own, prlimit }: Pick<Machine, 'interface' | 'prlimit'>): Buffer {
  const [refuse, allow] = [11, 12];
  const next = undefined;
  type Step = ['load', number] | ['is' | 'atLeast', number, yes?: number, no?: number] | ['return', number];
  const steps: Step[] = [
    ['load', call.interface],
    ['is', own, next, refuse],
    ['load', call.number],
    ['atLeast', 0x4000_0000, refuse, next], // the x32 interface
    ['is', prlimit, next, allow],
    ['load', call.process],
    ['is', 0, allow, next], // itself
    ['load', call.limitLow],
    ['is', 0, next, refuse],
    ['load', call.limitHigh],
    ['is', 0, allow, refuse], // no new limit: it only reads
    ['return', 0x0005_0001], // EPERM
    ['return', 0x7fff_0000],
  ];
  const codes = { load: 0x20, is: 0x15, atLeast: 0x35, return: 0x06 } as const;
  const filter = Buffer.alloc(steps.length * 8);
  for (const [at, [kind, value, ...targets]] of steps.entries()) {
    filter.writeUInt16LE(codes[kind], at * 8);
    for (const [which, target = at + 1] of targets.entries())
      filter.writeUInt8(target - at - 1, at * 8 + 2 + which);
    filter.writeUInt32LE(value, at * 8 + 4);
  }
  return filter;
}

/**
 * Byte offsets of the parts of the file. The data is mapped one (large) page above the rest, because it must
 * be writable.
 */
const at = { hash: 0x120, symbols: 0x130, strings: 0x148, code: 0x150, dynamic: 0x280 } as const;

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
  const { load, dynamic, stack } = segmentTypes;
  const data = { flags: readable | writable, from: at.dynamic, to: page + at.dynamic, bytes: dynamicBytes };
  const segments = [
    { type: load, flags: readable | executable, from: 0, to: 0, bytes: at.code + code.length },
    { type: load, ...data },
    { type: dynamic, ...data },
    { type: stack, flags: readable | writable, from: 0, to: 0, bytes: 0 },
  ];
  writeHeaders(file, { machine, kind: 'shared object', segments });
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
