import type { Capabilities } from '../../port/capabilities.ts';
import { plainRuntimes } from '../../port/plain-runtimes.ts';
import type { ContainerSpec } from '../container-spec.ts';
import { absentCalls, programCalls, sandboxCalls } from './calls.ts';
import { allow, equals, errors, masked, type Rule, refuse } from './rule.ts';
import { programSockets, sandboxSockets } from './sockets.ts';

/**
 * `sandbox`: for containers that run anything. `program`: for containers that run one program of Offsite's.
 */
type FilterKind = 'sandbox' | 'program';

/** Architectures by the kernel's names, and their names in a filter. */
const architectures: Readonly<Record<string, string>> = {
  x86_64: 'SCMP_ARCH_X86_64',
  aarch64: 'SCMP_ARCH_AARCH64',
};

/** The flags for new namespaces: mount points, control groups, names, IPC, users, processes and network. */
const newNamespaces = 0x7e02_0000;

/** The allowed arguments of `personality`: native, 32-bit, and the query that changes nothing. */
const personalities = [0, 8, 0xffff_ffff];

/**
 * A process may set its own limits, and only read those of others. Otherwise a program that verify runs could
 * prevent the shell that reports its steps from writing files.
 */
const ownLimits: readonly Rule[] = [
  allow(['prlimit64'], equals(0, 0)),
  allow(['prlimit64'], { index: 0, op: 'SCMP_CMP_NE', value: 0 }, equals(2, 0)),
];

/** `FALLOC_FL_PUNCH_HOLE`: gives space of a file back. */
const punchHole = 2;

/**
 * With `fallocate` a process takes gigabytes of a disk in a millisecond, before its disk limit can end it. As
 * on file systems that cannot do it, such as NFS and ZFS, it fails, and libraries write zeros instead. Giving
 * space back is allowed.
 */
const allocation: readonly Rule[] = [
  allow(['fallocate'], masked(1, punchHole, punchHole)),
  refuse('EOPNOTSUPP', ['fallocate'], masked(1, punchHole, 0)),
];

const common: readonly Rule[] = [
  ...ownLimits,
  ...allocation,
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

/** Whether Offsite can write a filter for an architecture. */
function isFilterable(arch: string): boolean {
  return arch in architectures;
}

/**
 * The filter of system calls in the engine's form; it replaces the engine's own. It lists what is allowed,
 * and only in the machine's 64-bit interface: a call through another interface (`int 0x80` and x32 on x86,
 * 32-bit ARM) ends the process. The other interfaces would bypass the filter, with arguments that a filter
 * cannot see (`socketcall`).
 */
function filterProfile(kind: FilterKind, arch: string): string {
  const profile = {
    defaultAction: 'SCMP_ACT_ERRNO',
    // As in the engine's own filter. Runtimes return ENOSYS for calls that are newer than every call named
    // here.
    defaultErrnoRet: errors.EPERM,
    architectures: [architectures[arch]],
    syscalls: rules[kind],
  };
  return JSON.stringify(profile);
}

type Machine = Pick<Capabilities, 'arch' | 'security' | 'takesFilters' | 'defaultRuntime'>;

/** The profile of Offsite's filter for a machine, in the engine's form; undefined if none can be sent. */
export function filterFor(kind: FilterKind, machine: Machine): string | undefined {
  return whyNotSent(machine) === undefined ? filterProfile(kind, machine.arch) : undefined;
}

/**
 * Why a container does or may run without Offsite's filter of system calls; undefined if it has the filter.
 */
export function filterObstacle(
  { runtime }: Pick<ContainerSpec, 'runtime'>,
  machine: Machine,
): string | undefined {
  const name = runtime ?? machine.defaultRuntime;
  // Runtimes with their own kernel leave the filter to that kernel, which usually has none.
  return (
    whyNotSent(machine) ?? (plainRuntimes.includes(name) ? undefined : `the runtime ${name} may ignore one`)
  );
}

function whyNotSent({ arch, security, takesFilters }: Machine): string | undefined {
  if (!security.seccomp) return 'its kernel has no seccomp';
  if (!takesFilters) return 'the engine does not accept any from its clients';
  return isFilterable(arch) ? undefined : `there is none for the architecture ${arch}`;
}
