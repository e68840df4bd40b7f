/*
 * A library that protects its process from all other processes of the same user. The programs that verify runs
 * are processes of the same user as the shells that report how each step ended.
 *
 * - They could read and change the memory of the shells. A process whose "dumpable" flag is off can be traced,
 *   and read in /proc, only with CAP_SYS_PTRACE (prctl(2), ptrace(2)), which no sandbox has.
 * - They could set limits on the shells, for example so that a shell writes no file. The filter of the sandbox
 *   refuses that, but a kernel of the runtime's own, as gVisor's, does not get that filter. It does take one
 *   from inside, which all programs of the script inherit.
 *
 * A shell can do neither itself, and `exec` resets the flag, so the loader puts this into both shells. It works
 * with any C library.
 */

#include <asm/errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <stddef.h>

#include "kernel.h"

/* The kernel's number of its 64-bit interface, and the first number of a call of the x32 interface. */
#if defined(__x86_64__)
#define OWN_INTERFACE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OWN_INTERFACE AUDIT_ARCH_AARCH64
#endif
#define X32_CALLS 0x40000000

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define LOAD_HIGH_HALF(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field) + 4)
/* These skip `count` instructions after a comparison of what was loaded. */
#define SKIP_IF(value, count) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, count, 0)
#define SKIP_UNLESS(value, count) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, count)
#define SKIP_IF_BELOW(value, count) BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, value, 0, count)
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define REFUSE BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)

/*
 * Refuses calls that set the limits of another process, and all calls through another interface than the
 * 64-bit one, which has other numbers. prlimit(process, resource, new limit, old limit) is the call.
 */
static struct sock_filter own_limits_only[] = {
  LOAD(arch),
  SKIP_IF(OWN_INTERFACE, 1),
  REFUSE,
  LOAD(nr),
  SKIP_IF_BELOW(X32_CALLS, 1),
  REFUSE,
  SKIP_IF(__NR_prlimit64, 1),
  ALLOW,
  /* Process 0 is the caller itself. */
  LOAD(args[0]),
  SKIP_UNLESS(0, 1),
  ALLOW,
  /* Without a new limit, it only reads. */
  LOAD(args[2]),
  SKIP_UNLESS(0, 3),
  LOAD_HIGH_HALF(args[2]),
  SKIP_UNLESS(0, 1),
  ALLOW,
  REFUSE,
};

__attribute__((constructor)) static void shield(void)
{
  struct sock_fprog filter = {
    .len = sizeof own_limits_only / sizeof *own_limits_only,
    .filter = own_limits_only,
  };
  call(__NR_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
  /* The kernel takes a filter only from a process that cannot gain privileges. */
  call(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  call(__NR_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, (long)&filter, 0, 0);
}
