/* Calls of the kernel without a C library: Offsite's own files in a sandbox need nothing of its image. */

#include <asm/unistd.h>

/* The calls are those of section 2 of the manual pages. A negative result is an error. */
static inline long call(long number, long first, long second, long third, long fourth, long fifth)
{
#if defined(__x86_64__)
  register long r10 __asm__("r10") = fourth;
  register long r8 __asm__("r8") = fifth;
  __asm__ volatile("syscall"
                   : "+a"(number)
                   : "D"(first), "S"(second), "d"(third), "r"(r10), "r"(r8)
                   : "rcx", "r11", "memory");
  return number;
#elif defined(__aarch64__)
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = first;
  register long x1 __asm__("x1") = second;
  register long x2 __asm__("x2") = third;
  register long x3 __asm__("x3") = fourth;
  register long x4 __asm__("x4") = fifth;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
  return x0;
#endif
}
