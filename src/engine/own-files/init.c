/*
 * The first process of a sandbox, which lives as long as the sandbox. It is Offsite's own and needs nothing of
 * the image, so neither an image nor an agent that is root can replace it: not even in a sandbox that is
 * started again because of processes that cannot be ended otherwise. `kill -9 -1` spares only this process.
 *
 * As any other process, it prints how many processes of the sandbox the kernel killed for memory, and ends.
 * This also works, and tells the truth, after a command replaced or removed the shell.
 */

#include <linux/fcntl.h>
#include <linux/fs.h>
#include <linux/prctl.h>
#include <linux/signal.h>

#include "kernel.h"

/* The lines of a hosts file that has only the loopback addresses. The build defines them. */
static const char hosts_lines[] = HOSTS_LINES;

static long open(const char *path, long flags)
{
  return call(__NR_openat, AT_FDCWD, (long)path, flags, 0644, 0);
}

static void write(long file, const char *bytes, long size)
{
  call(__NR_write, file, (long)bytes, size, 0, 0);
}

/* Without a network, engines leave the file empty. A pipe or a link of the image in its place is left alone. */
static void write_hosts(void)
{
  long file = open("/etc/hosts", O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_NOFOLLOW);
  if (file < 0)
    return;
  if (call(__NR_lseek, file, 0, SEEK_END, 0, 0) == 0) {
    write(file, hosts_lines, sizeof hosts_lines - 1);
    /* Podman makes the file readable for root alone. */
    call(__NR_fchmod, file, 0644, 0, 0, 0);
  }
  call(__NR_close, file, 0, 0, 0, 0);
}

static void keep_sandbox(void)
{
  /* Only a process with CAP_SYS_PTRACE can trace this one now, and none of a sandbox has that. */
  call(__NR_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
  /* So the kernel reaps the orphans. */
  static const struct sigaction ignore = {.sa_handler = SIG_IGN};
  call(__NR_rt_sigaction, SIGCHLD, (long)&ignore, 0, sizeof ignore.sa_mask, 0);
  write_hosts();
  for (;;)
    call(__NR_ppoll, 0, 0, 0, 0, 0);
}

/* Prints the file in which the kernel counts: of version 2 of control groups, or of version 1. */
static void print_memory_kills(void)
{
  char text[4096];
  long file = open("/sys/fs/cgroup/memory.events", O_RDONLY);
  if (file < 0)
    file = open("/sys/fs/cgroup/memory/memory.oom_control", O_RDONLY);
  long size = call(__NR_read, file, (long)text, sizeof text, 0, 0);
  if (size > 0)
    write(1, text, size);
}

/* On x86-64, compilers expect another alignment of the stack than the kernel starts a program with. */
#if defined(__x86_64__)
__attribute__((force_align_arg_pointer))
#endif
void _start(void)
{
  if (call(__NR_getpid, 0, 0, 0, 0, 0) == 1)
    keep_sandbox();
  print_memory_kills();
  call(__NR_exit_group, 0, 0, 0, 0, 0);
}
