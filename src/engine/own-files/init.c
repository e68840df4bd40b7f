/*
 * The first process of a sandbox, which lives as long as the sandbox. It is Offsite's own and needs nothing of
 * the image, so neither an image nor an agent that is root can replace it: not even in a sandbox that is
 * started again because of processes that cannot be ended otherwise. `kill -9 -1` spares only this process.
 *
 * It starts one command, which `by-init.ts` asks for on its standard input: the engine takes longer to start a
 * command than a sandbox. What asks for others gets them from the engine.
 *
 * As any other process, it prints how many processes of the sandbox the kernel killed for memory, and ends.
 * This also works, and tells the truth, after a command replaced or removed the shell.
 */

#include <asm/errno.h>
#include <linux/fcntl.h>
#include <linux/fs.h>
#include <linux/poll.h>
#include <linux/prctl.h>
#include <linux/signal.h>
#include <linux/wait.h>

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

/* Ignored, the kernel reaps the orphans. A command must not inherit that. */
static void set_child_signal(__sighandler_t handler)
{
  const struct sigaction action = {.sa_handler = handler};
  call(__NR_rt_sigaction, SIGCHLD, (long)&action, 0, sizeof action.sa_mask, 0);
}

/* The same limits as in by-init.ts. */
#define MAX_BYTES 262144
#define MAX_TEXTS 4096

/* The numbers at the beginning of a request; each text after them ends with a zero. */
struct request {
  unsigned bytes, arguments, variables;
};

static char texts[MAX_BYTES];
static char *arguments[MAX_TEXTS + 1];
static char *variables[MAX_TEXTS + 1];

static _Bool read_all(void *into, long size)
{
  for (char *next = into; size > 0;) {
    long count = call(__NR_read, 0, (long)next, size, 0, 0);
    if (count <= 0)
      return 0;
    next += count;
    size -= count;
  }
  return 1;
}

static char *text_after(char *text)
{
  while (*text != 0)
    text++;
  return text + 1;
}

static _Bool have_one_name(const char *first, const char *second)
{
  while (*first != 0 && *first != '=' && *first == *second) {
    first++;
    second++;
  }
  return *first == '=' && *second == '=';
}

/* Adds those of init's own variables, which are the image's, that the request does not set. False if too many. */
static _Bool add_own_variables(char **own, unsigned count)
{
  for (unsigned total = count; *own != 0; own++) {
    unsigned at = 0;
    while (at < count && !have_one_name(variables[at], *own))
      at++;
    if (at < count)
      continue;
    if (total == MAX_TEXTS)
      return 0;
    variables[total++] = *own;
  }
  return 1;
}

/* Writes "secret letter number", a line, in one call: no output of another process comes between. */
static void report(const char *secret, char letter, unsigned number)
{
  char line[128];
  long size = 0;
  while (*secret != 0 && size < 64)
    line[size++] = *secret++;
  line[size++] = ' ';
  line[size++] = letter;
  line[size++] = ' ';
  unsigned unit = 1;
  while (number / unit >= 10)
    unit *= 10;
  for (; unit > 0; unit /= 10)
    line[size++] = '0' + number / unit % 10;
  line[size++] = '\n';
  /* A command may have made the shared pipe one that does not wait, and filled it. */
  struct pollfd output = {.fd = 1, .events = POLLOUT};
  while (call(__NR_write, 1, (long)line, size, 0, 0) == -EAGAIN)
    call(__NR_ppoll, (long)&output, 1, 0, 0, 0);
}

/* Starts the command in a session of its own. The result is its process, or an error of the kernel. */
static long start_command(const char *folder)
{
  /* Closes without a word if the kernel starts the program. */
  int failure[2];
  int error = 0;
  long result = call(__NR_pipe2, (long)failure, O_CLOEXEC, 0, 0, 0);
  if (result < 0)
    return result;
  long child = call(__NR_clone, SIGCHLD, 0, 0, 0, 0);
  if (child == 0) {
    call(__NR_setsid, 0, 0, 0, 0, 0);
    error = call(__NR_chdir, (long)folder, 0, 0, 0, 0);
    if (error == 0)
      error = call(__NR_execve, (long)arguments[0], (long)arguments, (long)variables, 0, 0);
    write(failure[1], (const char *)&error, sizeof error);
    call(__NR_exit_group, 127, 0, 0, 0, 0);
  }
  call(__NR_close, failure[1], 0, 0, 0, 0);
  call(__NR_read, failure[0], (long)&error, sizeof error, 0, 0);
  call(__NR_close, failure[0], 0, 0, 0, 0);
  return error < 0 ? error : child;
}

/*
 * Reads a request: numbers, then a secret word, a folder, arguments and variables. Reports the start ("S 0") or
 * why there is none ("N error"), and then the end ("X code", 128 and the signal if one ended it), each behind
 * the word. Only this process knows the word, and no other of the sandbox can read its memory.
 */
static void run_command(char **own_variables)
{
  struct request request;
  if (!read_all(&request, sizeof request) || request.bytes > MAX_BYTES || request.arguments > MAX_TEXTS ||
      request.variables > MAX_TEXTS || !read_all(texts, request.bytes))
    return;
  char *secret = texts;
  char *folder = text_after(secret);
  char *next = text_after(folder);
  for (unsigned at = 0; at < request.arguments; at++, next = text_after(next))
    arguments[at] = next;
  for (unsigned at = 0; at < request.variables; at++, next = text_after(next))
    variables[at] = next;
  set_child_signal(SIG_DFL);
  long child = add_own_variables(own_variables, request.variables) ? start_command(folder) : -E2BIG;
  report(secret, child < 0 ? 'N' : 'S', child < 0 ? -child : 0);
  /* The command alone has its input now. */
  call(__NR_close, 0, 0, 0, 0, 0);
  int status = 0;
  long ended = 0;
  while (child > 0 && ended != child && ended >= 0)
    ended = call(__NR_wait4, -1, (long)&status, 0, 0, 0);
  if (child > 0 && ended == child)
    report(secret, 'X', (status & 0x7f) != 0 ? 128 + (status & 0x7f) : status >> 8 & 0xff);
}

static void keep_sandbox(char **own_variables)
{
  /* Only a process with CAP_SYS_PTRACE can trace this one now, and none of a sandbox has that. */
  call(__NR_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
  set_child_signal(SIG_IGN);
  write_hosts();
  run_command(own_variables);
  set_child_signal(SIG_IGN);
  while (call(__NR_wait4, -1, 0, WNOHANG, 0, 0) > 0)
    ;
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

/* The kernel starts a program with the numbers and pointers of its arguments and variables on the stack. */
#if defined(__x86_64__)
__asm__(".globl _start\n_start: mov %rsp, %rdi\nand $-16, %rsp\ncall begin\n");
#elif defined(__aarch64__)
__asm__(".globl _start\n_start: mov x0, sp\nbl begin\n");
#endif

__attribute__((used)) void begin(char **stack)
{
  long count = *(long *)stack;
  if (call(__NR_getpid, 0, 0, 0, 0, 0) == 1)
    keep_sandbox(stack + count + 2);
  print_memory_kills();
  call(__NR_exit_group, 0, 0, 0, 0, 0);
}
