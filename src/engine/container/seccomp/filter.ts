import { type Capabilities, plainRuntimes } from '../../port/engine-port.ts';
import type { ContainerSpec } from '../container-spec.ts';

/** One condition on an argument of a call, which the kernel compares as 64 bits without a sign. */
interface Condition {
  index: number;
  op: 'SCMP_CMP_EQ' | 'SCMP_CMP_NE' | 'SCMP_CMP_GT' | 'SCMP_CMP_MASKED_EQ';
  value: number;
  /** For `SCMP_CMP_MASKED_EQ`: the required value of those bits that are set in `value`. */
  valueTwo?: number;
}

/**
 * What happens to some calls if all conditions hold, in the engine's form. Rules for the same call must not
 * overlap.
 */
interface Rule {
  names: readonly string[];
  action: 'SCMP_ACT_ALLOW' | 'SCMP_ACT_ERRNO';
  args?: Condition[];
  /** The number of the error that the caller sees. */
  errnoRet?: number;
}

/** Error numbers, the same on all Linux architectures that Offsite supports. */
const errors = {
  EPERM: 1,
  ENOSYS: 38,
  EPROTONOSUPPORT: 93,
  EOPNOTSUPP: 95,
  EAFNOSUPPORT: 97,
} as const;

function allow(names: readonly string[], ...args: Condition[]): Rule {
  return { names, action: 'SCMP_ACT_ALLOW', ...(args.length > 0 && { args }) };
}

function refuse(error: keyof typeof errors, names: readonly string[], ...args: Condition[]): Rule {
  return { names, action: 'SCMP_ACT_ERRNO', errnoRet: errors[error], ...(args.length > 0 && { args }) };
}

function equals(index: number, value: number): Condition {
  return { index, op: 'SCMP_CMP_EQ', value };
}

function differs(index: number, value: number): Condition {
  return { index, op: 'SCMP_CMP_NE', value };
}

/** Holds if the argument's bits under `mask` equal those of `value`. */
function masked(index: number, mask: number, value: number): Condition {
  return { index, op: 'SCMP_CMP_MASKED_EQ', value: mask, valueTwo: value };
}

/**
 * The system calls that programs need, by purpose, under the names of Linux on 64-bit machines. A name that a
 * machine's kernel does not have is harmless. Calls that no list names are refused: a call that Linux adds
 * tomorrow is refused until somebody adds it here. The lists contain no call that the engine's default filter
 * (Docker's) refuses to a container without capabilities.
 *
 * These are for Offsite's own program that reads files and serves connections: it changes no file, starts no
 * process and traces none. `clone`, which makes threads as well as processes, and the sockets that a program
 * may create are below.
 */
const programCalls = names(`
  streams: close close_range dup dup2 dup3 fcntl ioctl lseek pipe pipe2 pread64 preadv preadv2 read readv
    sendfile splice tee vmsplice write writev
  reading: access cachestat chdir faccessat faccessat2 fadvise64 fchdir fgetxattr flistxattr flock fstat
    fstatfs getcwd getdents getdents64 getxattr getxattrat lgetxattr listxattr listxattrat llistxattr lstat
    newfstatat open openat openat2 readahead readlink readlinkat stat statfs statx umask
  memory: brk madvise map_shadow_stack membarrier memfd_create mincore mlock mlock2 mlockall mmap mprotect
    mremap mseal msync munlock munlockall munmap pkey_alloc pkey_free pkey_mprotect remap_file_pages
  waiting: epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd eventfd2 futex
    futex_requeue futex_wait futex_waitv futex_wake get_robust_list poll ppoll pselect6 select
    set_robust_list
  time: alarm clock_getres clock_gettime clock_nanosleep getitimer gettimeofday nanosleep setitimer time
    timer_create timer_delete timer_getoverrun timer_gettime timer_settime timerfd_create timerfd_gettime
    timerfd_settime times
  signals: kill pause pidfd_open pidfd_send_signal restart_syscall rt_sigaction rt_sigpending
    rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo sigaltstack
    signalfd signalfd4 tgkill tkill
  running: arch_prctl capget execve execveat exit exit_group getcpu getpgid getpgrp getpid getppid
    getpriority getrandom getrlimit getrusage getsid gettid prctl riscv_hwprobe rseq sched_get_priority_max
    sched_get_priority_min sched_getaffinity sched_getattr sched_getparam sched_getscheduler
    sched_rr_get_interval sched_setaffinity sched_yield set_tid_address sysinfo uname uretprobe
  reading identity: getegid geteuid getgid getgroups getresgid getresuid getuid
  connections: accept accept4 bind connect getpeername getsockname getsockopt listen recvfrom recvmmsg
    recvmsg sendmmsg sendmsg sendto setsockopt shutdown`);

/**
 * These are for a sandbox. Debuggers and leak checkers need what traces, and refusing it would not help: a
 * process that may trace another can also write its memory through /proc. The kernel allows both only for
 * processes of the same user inside the sandbox.
 */
const sandboxCalls = names(`
  changing: chmod chown copy_file_range creat fchmod fchmodat fchmodat2 fchown fchownat fdatasync
    fremovexattr fsetxattr fsync ftruncate futimesat lchown link linkat lremovexattr lsetxattr mkdir mkdirat
    mknod mknodat pwrite64 pwritev pwritev2 removexattr removexattrat rename renameat renameat2 rmdir
    setxattr setxattrat symlink symlinkat sync sync_file_range syncfs truncate unlink unlinkat utime
    utimensat utimes
  watching: inotify_add_watch inotify_init inotify_init1 inotify_rm_watch
  starting: capset fork ioprio_get ioprio_set landlock_add_rule landlock_create_ruleset
    landlock_restrict_self process_mrelease sched_setattr sched_setparam sched_setscheduler seccomp setpgid
    setpriority setrlimit setsid vfork wait4 waitid
  changing identity: setfsgid setfsuid setgid setgroups setregid setresgid setresuid setreuid setuid
  exchange: io_cancel io_destroy io_getevents io_pgetevents io_setup io_submit mq_getsetattr mq_notify
    mq_open mq_timedreceive mq_timedsend mq_unlink msgctl msgget msgrcv msgsnd semctl semget semop
    semtimedop shmat shmctl shmdt shmget
  tracing: process_vm_readv process_vm_writev ptrace`).concat(programCalls);

/**
 * Calls that libraries try but can do without: they fail as if the kernel did not have them. Filters cannot
 * read `clone3`'s flags. The others are newer than most kernels, or bypass filters, as `io_uring` does.
 */
const absentCalls = names(`
  clone3 file_getattr file_setattr io_uring_enter io_uring_register io_uring_setup listmount listns
  lsm_get_self_attr lsm_list_modules lsm_set_self_attr memfd_secret name_to_handle_at open_tree_attr
  rseq_slice_yield statmount`);

/** The calls of a text, in which a purpose ends with a colon. */
function names(text: string): string[] {
  return text
    .replace(/^ *[a-z ]+:/gm, '')
    .trim()
    .split(/\s+/);
}

const families = { unix: 1, inet: 2, inet6: 10, netlink: 16 } as const;
const types = { stream: 1, datagram: 2 } as const;
/** The bits of a socket's type, without its flags (SOCK_NONBLOCK, SOCK_CLOEXEC). */
const typeBits = 0xf;
/** 0 is the default protocol: TCP for streams, UDP for datagrams. */
const protocols = {
  stream: { inet: [0, 6], inet6: [0, 6] },
  datagram: { inet: [0, 17, 1], inet6: [0, 17, 58] },
} as const;

const isFamily = (family: number) => equals(0, family);
const isType = (type: number) => masked(1, typeBits, type);
const isProtocol = (protocol: number) => equals(2, protocol);

const socketsOver = (family: 'inet' | 'inet6', type: 'stream' | 'datagram'): Rule[] =>
  protocols[type][family].map((protocol) =>
    allow(['socket'], isFamily(families[family]), isType(types[type]), isProtocol(protocol)),
  );

/**
 * The sockets that a sandbox may create: families unix, inet, inet6 and netlink. For inet and inet6 only TCP,
 * UDP and echo (ping): other types or protocols make the kernel load modules that are rarely reviewed. For
 * netlink only what lists interfaces and routes. For any other family the call fails as if the kernel did not
 * know the family, which programs can handle.
 */
const sandboxSockets: readonly Rule[] = [
  allow(['socket'], isFamily(families.unix)),
  ...socketsOver('inet', 'stream'),
  ...socketsOver('inet', 'datagram'),
  ...socketsOver('inet6', 'stream'),
  ...socketsOver('inet6', 'datagram'),
  allow(['socket'], isFamily(families.netlink), isProtocol(0)),
  refuse('EPROTONOSUPPORT', ['socket'], isFamily(families.netlink), differs(2, 0)),
  ...otherFamilies(Object.values(families)),
  allow(['socketpair'], isFamily(families.unix)),
  refuse('EAFNOSUPPORT', ['socketpair'], differs(0, families.unix)),
];

/** TCP over IPv4, and streams to a socket in a folder that the container mounts. */
const programSockets: readonly Rule[] = [
  allow(['socket'], isFamily(families.unix), isType(types.stream)),
  ...socketsOver('inet', 'stream'),
  ...otherFamilies([families.unix, families.inet]),
];

/**
 * Refuses every family but `known`. A rule cannot have two conditions on one argument, so the gaps are listed
 * one by one.
 */
function otherFamilies(known: readonly number[]): Rule[] {
  const last = Math.max(...known);
  const gaps = Array.from({ length: last }, (_, family) => family).filter(
    (family) => !known.includes(family),
  );
  return [
    ...gaps.map((family) => refuse('EAFNOSUPPORT', ['socket'], isFamily(family))),
    refuse('EAFNOSUPPORT', ['socket'], { index: 0, op: 'SCMP_CMP_GT', value: last }),
  ];
}

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
  allow(['prlimit64'], differs(0, 0), equals(2, 0)),
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

type Machine = Pick<Capabilities, 'arch' | 'security' | 'defaultRuntime'>;

/**
 * The filter of system calls in the engine's form; it replaces the engine's own. It lists what is allowed,
 * and only in the machine's 64-bit interface: a call through another interface (`int 0x80` and x32 on x86,
 * 32-bit ARM) ends the process. The other interfaces would bypass the filter, with arguments that a filter
 * cannot see (`socketcall`). Undefined if the machine's kernel takes none.
 */
export function filterFor(kind: FilterKind, { security, arch }: Machine): string | undefined {
  if (!security.seccomp) return undefined;
  return JSON.stringify({
    defaultAction: 'SCMP_ACT_ERRNO',
    // As in the engine's own filter. Runtimes return ENOSYS for calls that are newer than every call named
    // here.
    defaultErrnoRet: errors.EPERM,
    architectures: [architectures[arch]],
    syscalls: rules[kind],
  });
}

/**
 * Why a container does or may run without Offsite's filter of system calls; undefined if it has the filter.
 */
export function filterObstacle(
  { runtime }: Pick<ContainerSpec, 'runtime'>,
  { security, defaultRuntime }: Machine,
): string | undefined {
  const name = runtime ?? defaultRuntime;
  if (!security.seccomp) return 'its kernel has no seccomp';
  // Runtimes with their own kernel leave the filter to that kernel, which usually has none.
  return plainRuntimes.includes(name) ? undefined : `the runtime ${name} may ignore one`;
}
