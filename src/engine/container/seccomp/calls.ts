/**
 * The system calls that programs need, by purpose, under the names of Linux on 64-bit machines. A name that a
 * machine's kernel does not have is harmless. Calls that no list names are refused: a call that Linux adds
 * tomorrow is refused until somebody adds it here. The lists contain no call that the engine's default filter
 * (Docker's) refuses to a container without capabilities.
 */

const streams = names(`
  close close_range dup dup2 dup3 fcntl ioctl lseek pipe pipe2 pread64 preadv preadv2 read readv
  sendfile splice tee vmsplice write writev`);

const reading = names(`
  access cachestat chdir faccessat faccessat2 fadvise64 fchdir fgetxattr flistxattr flock fstat fstatfs
  getcwd getdents getdents64 getxattr getxattrat lgetxattr listxattr listxattrat llistxattr lstat
  newfstatat open openat openat2 readahead readlink readlinkat stat statfs statx umask`);

const changing = names(`
  chmod chown copy_file_range creat fchmod fchmodat fchmodat2 fchown fchownat fdatasync
  fremovexattr fsetxattr fsync ftruncate futimesat lchown link linkat lremovexattr lsetxattr mkdir
  mkdirat mknod mknodat pwrite64 pwritev pwritev2 removexattr removexattrat rename renameat renameat2
  rmdir setxattr setxattrat symlink symlinkat sync sync_file_range syncfs truncate unlink unlinkat utime
  utimensat utimes`);

const watching = names('inotify_add_watch inotify_init inotify_init1 inotify_rm_watch');

const memory = names(`
  brk madvise map_shadow_stack membarrier memfd_create mincore mlock mlock2 mlockall mmap mprotect
  mremap mseal msync munlock munlockall munmap pkey_alloc pkey_free pkey_mprotect remap_file_pages`);

const waiting = names(`
  epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd eventfd2 futex
  futex_requeue futex_wait futex_waitv futex_wake get_robust_list poll ppoll pselect6 select
  set_robust_list`);

const time = names(`
  alarm clock_getres clock_gettime clock_nanosleep getitimer gettimeofday nanosleep setitimer time
  timer_create timer_delete timer_getoverrun timer_gettime timer_settime timerfd_create timerfd_gettime
  timerfd_settime times`);

const signals = names(`
  kill pause pidfd_open pidfd_send_signal restart_syscall rt_sigaction rt_sigpending rt_sigprocmask
  rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo sigaltstack signalfd
  signalfd4 tgkill tkill`);

/** `clone` makes threads as well as processes; filter.ts forbids creating namespaces with it. */
const running = names(`
  arch_prctl capget execve execveat exit exit_group getcpu getpgid getpgrp getpid getppid getpriority
  getrandom getrlimit getrusage getsid gettid prctl riscv_hwprobe rseq sched_get_priority_max
  sched_get_priority_min sched_getaffinity sched_getattr sched_getparam sched_getscheduler
  sched_rr_get_interval sched_setaffinity sched_yield set_tid_address sysinfo uname uretprobe`);

const starting = names(`
  capset fork ioprio_get ioprio_set landlock_add_rule landlock_create_ruleset landlock_restrict_self
  process_mrelease sched_setattr sched_setparam sched_setscheduler seccomp setpgid setpriority setrlimit
  setsid vfork wait4 waitid`);

const readingIdentity = names('getegid geteuid getgid getgroups getresgid getresuid getuid');

const changingIdentity = names(
  'setfsgid setfsuid setgid setgroups setregid setresgid setresuid setreuid setuid',
);

/** Operations on sockets; sockets.ts says which sockets a program may create. */
const connections = names(`
  accept accept4 bind connect getpeername getsockname getsockopt listen recvfrom recvmmsg recvmsg
  sendmmsg sendmsg sendto setsockopt shutdown`);

const exchange = names(`
  io_cancel io_destroy io_getevents io_pgetevents io_setup io_submit mq_getsetattr mq_notify mq_open
  mq_timedreceive mq_timedsend mq_unlink msgctl msgget msgrcv msgsnd semctl semget semop semtimedop
  shmat shmctl shmdt shmget`);

/**
 * Debuggers and leak checkers need these, and refusing them would not help: a process that may trace another
 * can also write its memory through /proc. The kernel allows both only for processes of the same user inside
 * the sandbox.
 */
const tracing = names('process_vm_readv process_vm_writev ptrace');

export const sandboxCalls: readonly string[] = [
  ...[streams, reading, changing, watching, memory, waiting, time, signals, running, starting],
  ...[readingIdentity, changingIdentity, connections, exchange, tracing],
].flat();

/**
 * For Offsite's own program that reads files and serves connections: it changes no file, starts no process
 * and traces none.
 */
export const programCalls: readonly string[] = [
  ...[streams, reading, memory, waiting, time, signals, running, readingIdentity, connections],
].flat();

/**
 * Calls that libraries try but can do without: they fail as if the kernel did not have them. Filters cannot
 * read `clone3`'s flags. The others are newer than most kernels, or bypass filters, as `io_uring` does.
 */
export const absentCalls: readonly string[] = names(`
  clone3 file_getattr file_setattr io_uring_enter io_uring_register io_uring_setup listmount listns
  lsm_get_self_attr lsm_list_modules lsm_set_self_attr memfd_secret name_to_handle_at open_tree_attr
  rseq_slice_yield statmount`);

function names(text: string): string[] {
  return text.trim().split(/\s+/);
}
