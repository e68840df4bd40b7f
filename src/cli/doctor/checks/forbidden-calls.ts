/**
 * Tries, in the base image's Python, the calls that Offsite's filter refuses. Prints those that succeeded, in
 * lines of `name: values`. The arguments of each call are such that a successful call does nothing.
 */
export const reachForbidden = `
import ctypes, errno, os, platform, socket
libc = ctypes.CDLL(None, use_errno=True)
x86 = platform.machine() == 'x86_64'

def opens(family):
    for kind in (1, 2, 3, 5):
        try:
            socket.socket(family, kind).close()
            return True
        except OSError:
            pass

known = {family.value: family.name[3:].lower() for family in socket.AddressFamily}
families = [known.get(family, str(family)) for family in range(64) if opens(family)]
print('socket families:', *families)

# Numbers on x86-64 and on 64-bit ARM.
calls = {
    'bpf': (321, 280), 'io_uring': (425, 425), 'keyctl': (250, 219), 'mount': (165, 40), 'perf_event_open': (298, 241),
    'open_by_handle_at': (304, 265), 'setns': (308, 268), 'unshare': (272, 97), 'userfaultfd': (323, 282),
}
def reached(number):
    return libc.syscall(number, 0, 0, 0, 0) != -1 or ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS)
print('forbidden calls:', *[name for name, numbers in calls.items() if reached(numbers[0 if x86 else 1])] or ['none'])

def answers(number):
    """Whether getpid succeeds through int 0x80. A child calls it, because the kernel may kill the caller."""
    libc.mmap.restype = ctypes.c_void_p
    code = bytes.fromhex('89f8cd80c3')
    page = libc.mmap(None, 4096, 7, 0x62, -1, 0)
    ctypes.memmove(page, code, len(code))
    child = os.fork()
    if child == 0:
        os._exit(0 if ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint)(page)(number) > 0 else 1)
    return os.waitpid(child, 0)[1] == 0
print('32-bit calls:', 'answered' if x86 and answers(20) else 'none')
`;

/** What the program prints if the filter works. */
export const forbiddenReached: Readonly<Record<string, string>> = {
  'socket families': 'unix inet inet6 netlink',
  'forbidden calls': 'none',
  '32-bit calls': 'none',
};
