import { absentCalls, programCalls, sandboxCalls } from './calls.ts';
import { allow, equals, errors, masked, type Rule, refuse } from './rule.ts';
import { programSockets, sandboxSockets } from './sockets.ts';

/** `sandbox`: where anything may run. `program`: the one program of ours that a container is for. */
export type FilterKind = 'sandbox' | 'program';

/** The engine's names of machines, and what a filter calls them. */
const architectures: Readonly<Record<string, string>> = {
  x86_64: 'SCMP_ARCH_X86_64',
  amd64: 'SCMP_ARCH_X86_64',
  aarch64: 'SCMP_ARCH_AARCH64',
  arm64: 'SCMP_ARCH_AARCH64',
};

/** Of mount points, control groups, names, IPC, users, processes and network. */
const newNamespaces = 0x7e02_0000;

/**
 * How a process may present the kernel to itself: as it is, or as that of a 32-bit machine. The last one only
 * asks.
 */
const personalities = [0, 8, 0xffff_ffff];

/**
 * Limits are a process's own to set, and others' only to read: a program that verify runs could otherwise
 * keep the shell that tells of its steps from writing files.
 */
const ownLimits: readonly Rule[] = [
  allow(['prlimit64'], equals(0, 0)),
  allow(['prlimit64'], { index: 0, op: 'SCMP_CMP_NE', value: 0 }, equals(2, 0)),
];

const common: readonly Rule[] = [
  ...ownLimits,
  allow(['clone'], masked(0, newNamespaces, 0)),
  refuse('ENOSYS', absentCalls),
];

const rules: Readonly<Record<FilterKind, readonly Rule[]>> = {
  sandbox: [
    allow(sandboxCalls),
    ...sandboxSockets,
    ...personalities.map((personality) => allow(['personality'], equals(0, personality))),
    ...common,
  ],
  program: [allow(programCalls), ...programSockets, ...common],
};

/** Whether we know how to write a filter for a machine. */
export function isFilterable(arch: string): boolean {
  return arch in architectures;
}

/**
 * The filter of system calls in the form that the engine takes, which replaces its own. It lists what is
 * allowed, and only of the machine's 64-bit interface: a call through one of the others (`int 0x80` and x32
 * on x86, 32-bit ARM) ends the process. Those would be a second door to everything, with arguments that a
 * filter cannot see (`socketcall`).
 */
export function filterProfile(kind: FilterKind, arch: string): string {
  const profile = {
    defaultAction: 'SCMP_ACT_ERRNO',
    // As in the engine's own filter. Runtimes answer ENOSYS for calls newer than all that are named here.
    defaultErrnoRet: errors.EPERM,
    architectures: [architectures[arch]],
    syscalls: rules[kind],
  };
  return JSON.stringify(profile);
}
