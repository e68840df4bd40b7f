import { type Machine, staticProgram } from './static-program.ts';

/**
 * A program that prints the file in which the kernel counts how many processes of the container it killed for
 * memory: of version 2 of control groups, or of version 1. It prints nothing if there is neither. It needs
 * nothing of the image, so it also works, and tells the truth, after a command replaced or removed the shell.
 */
export function memoryKills(arch: string): Buffer | undefined {
  const machine = machines[arch];
  return (
    machine &&
    staticProgram(machine, [
      { at: version2At, bytes: Buffer.from('/sys/fs/cgroup/memory.events\0') },
      { at: version1At, bytes: Buffer.from('/sys/fs/cgroup/memory/memory.oom_control\0') },
    ])
  );
}

/** Byte offsets in the file. */
const version2At = 0x100;
const version1At = 0x140;

/** The bytes that it reads are put below the stack. */
const machines: Readonly<Record<string, Machine>> = {
  x86_64: {
    number: 62,
    code: [
      'bf9cffffffbe0001400031d2b8010100000f05', // openat(AT_FDCWD, version2, O_RDONLY)
      '85c07915', // if it opened, go to read
      'bf9cffffffbe40014000b8010100000f05', // openat(AT_FDCWD, version1, O_RDONLY)
      '85c07825', // if it failed, go to exit
      '89c7488db42400f0ffffba0010000031c00f05', // read(file, bytes, 4096)
      '85c0780e', // if it failed, go to exit
      '89c2bf01000000b8010000000f05', // write(1, bytes, how many)
      '31ffb83c0000000f05', // exit(0)
    ],
  },
  aarch64: {
    number: 183,
    code: [
      '0908a0d2', // the address of the file
      '600c809221010491020080d2080780d2010000d4', // openat(AT_FDCWD, version2, O_RDONLY)
      'a000f8b6', // if it opened, go to read
      '600c809221010591010000d4', // openat(AT_FDCWD, version1, O_RDONLY)
      '4001f8b7', // if it failed, go to exit
      'e10740d1020082d2e80780d2010000d4', // read(file, bytes, 4096)
      'a000f8b7', // if it failed, go to exit
      'e20300aa200080d2080880d2010000d4', // write(1, bytes, how many)
      '000080d2a80b80d2010000d4', // exit(0)
    ],
  },
};
