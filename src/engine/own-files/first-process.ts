import { type Machine, staticProgram } from './static-program.ts';

/**
 * The program that is the first process of a sandbox, which lives as long as the sandbox. It is Offsite's own
 * and needs nothing of the image, so neither an image nor an agent that is root can replace it: not even in a
 * sandbox that is started again because of processes that cannot be ended otherwise.
 *
 * It turns off its "dumpable" flag, so that no process can trace it, and ignores SIGCHLD, so that the kernel
 * reaps the orphans. It writes these lines to `/etc/hosts` if that is empty or missing, and if it may. Then
 * it waits. It is the only process that `kill -9 -1` spares.
 */
export function firstProcess(arch: string, hosts: string): Buffer | undefined {
  const machine = machines[arch];
  const lines = Buffer.from(hosts);
  return (
    machine &&
    staticProgram(machine, [
      { at: hostsBytesAt, bytes: Buffer.from([lines.length, 0, 0, 0]) },
      // A `struct sigaction` whose handler is SIG_IGN; all else is 0.
      { at: ignoreAt, bytes: Buffer.from([1, 0, 0, 0]) },
      { at: pathAt, bytes: Buffer.from('/etc/hosts\0') },
      { at: hostsAt, bytes: lines },
    ])
  );
}

/** Byte offsets in the file. */
const hostsBytesAt = 0xf8;
const ignoreAt = 0x100;
const pathAt = 0x120;
const hostsAt = 0x130;

/**
 * `hosts` is what it opened, with the flags O_WRONLY, O_CREAT, O_APPEND, O_NONBLOCK and O_NOFOLLOW: a pipe or
 * a link there does not matter.
 */
const machines: Readonly<Record<string, Machine>> = {
  x86_64: {
    number: 62,
    code: [
      'b89d000000bf0400000031f60f05', // prctl(PR_SET_DUMPABLE, 0)
      'bf11000000be0001400031d241ba08000000b80d0000000f05', // rt_sigaction(SIGCHLD, ignore, 0, 8)
      'bf9cffffffbe20014000ba410c020041baa4010000b8010100000f05', // openat(AT_FDCWD, path, flags, 0o644)
      '85c0784289c3', // if it failed, go to pause
      '89df31f6ba02000000b8080000000f05', // lseek(hosts, 0, SEEK_END)
      '4885c07522', // if it is not empty, go to close
      '89dfbe300140008b158dfeffffb8010000000f05', // write(hosts, lines, their bytes)
      '89dfbea4010000b85b0000000f05', // fchmod(hosts, 0o644)
      '89dfb8030000000f05', // close(hosts)
      'b8220000000f05ebf7', // pause() again and again
    ],
  },
  aarch64: {
    number: 183,
    code: [
      '0908a0d2', // the address of the file
      '800080d2010080d2e81480d2010000d4', // prctl(PR_SET_DUMPABLE, 0)
      '200280d221010491020080d2030180d2c81080d2010000d4', // rt_sigaction(SIGCHLD, ignore, 0, 8)
      '600c809221810491228891d2833480d2080780d2010000d4', // openat(AT_FDCWD, path, flags, 0o644)
      '6002f8b7f30300aa', // if it failed, go to ppoll
      '010080d2420080d2c80780d2010000d4', // lseek(hosts, 0, SEEK_END)
      '400100b5', // if it is not empty, go to close
      'e00313aa21c1049122f940b9080880d2010000d4', // write(hosts, lines, their bytes)
      'e00313aa813480d2880680d2010000d4', // fchmod(hosts, 0o644)
      'e00313aa280780d2010000d4', // close(hosts)
      '000080d2010080d2020080d2030080d2040080d2280980d2010000d4f9ffff17', // ppoll(0, 0, 0, 0) again and again
    ],
  },
};
