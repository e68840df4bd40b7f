# Tries system calls that a sandbox must not have, through each of the processor's ways into the kernel, and
# prints as one JSON object what came of each: `allowed`, the name of an error, or the signal that ended the
# caller. All but sockets is tried in a child, and with arguments that do nothing where it is allowed.
import ctypes, errno, json, os, platform, signal, struct, sys, tempfile

libc = ctypes.CDLL(None, use_errno=True)
is_x86 = platform.machine() == 'x86_64'


def outcome(call):
    """What `call` comes to in a child; it returns less than 0 for an error, as the kernel does."""
    child = os.fork()
    if child == 0:
        result = call()
        os._exit(0 if result >= 0 else min(-result, 255))
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    code = os.WEXITSTATUS(status)
    return 'allowed' if code == 0 else errno.errorcode.get(code, str(code))


def native(number, *arguments):
    result = libc.syscall(ctypes.c_long(number), *(ctypes.c_ulong(argument) for argument in arguments))
    return -ctypes.get_errno() if result == -1 else result


def opened(call, *arguments):
    """What a call that makes sockets comes to."""
    result = native(call, *arguments)
    if result < 0:
        return errno.errorcode.get(-result, str(-result))
    if call == socket:
        os.close(result)
    else:
        os.close(pair[0])
        os.close(pair[1])
    return 'allowed'


# Per machine: x86-64, and the generic numbers that 64-bit ARM has.
calls = {
    name: (x86 if is_x86 else generic)
    for name, x86, generic in [
        ('acct', 163, 89), ('add_key', 248, 217), ('bpf', 321, 280), ('chroot', 161, 51), ('clock_settime', 227, 112),
        ('delete_module', 176, 106), ('fanotify_init', 300, 262), ('finit_module', 313, 273), ('fsconfig', 431, 431),
        ('fsmount', 432, 432), ('fsopen', 430, 430), ('fspick', 433, 433), ('init_module', 175, 105),
        ('io_uring_enter', 426, 426), ('io_uring_register', 427, 427), ('io_uring_setup', 425, 425), ('kcmp', 312, 272),
        ('kexec_file_load', 320, 294), ('kexec_load', 246, 104), ('keyctl', 250, 219), ('lookup_dcookie', 212, 18),
        ('mbind', 237, 235), ('memfd_secret', 447, 447), ('migrate_pages', 256, 238), ('mount', 165, 40),
        ('mount_setattr', 442, 442), ('move_mount', 429, 429), ('move_pages', 279, 239), ('open_by_handle_at', 304, 265),
        ('open_tree', 428, 428), ('perf_event_open', 298, 241), ('pidfd_getfd', 438, 438), ('pivot_root', 155, 41),
        ('process_madvise', 440, 440), ('quotactl', 179, 60), ('quotactl_fd', 443, 443), ('request_key', 249, 218),
        ('set_mempolicy', 238, 237), ('setdomainname', 171, 162), ('sethostname', 170, 161), ('setns', 308, 268),
        ('settimeofday', 164, 170), ('swapoff', 168, 225), ('swapon', 167, 224), ('syslog', 103, 116),
        ('umount2', 166, 39), ('unshare', 272, 97), ('userfaultfd', 323, 282), ('vhangup', 153, 58),
        ('clone3', 435, 435), ('name_to_handle_at', 303, 264),
    ]
}  # fmt: skip
socket, socketpair, clone, personality = (41, 53, 56, 135) if is_x86 else (198, 199, 220, 92)
stream, datagram, raw, sequenced = 1, 2, 3, 5

found = {'calls': {name: outcome(lambda: native(number, 0, 0, 0, 0)) for name, number in calls.items()}}


pair = (ctypes.c_int * 2)()


def sockets(call):
    kinds = (stream, datagram, raw, sequenced)
    families = {
        family: [opened(call, family, kind, 0, ctypes.addressof(pair)) for kind in kinds] for family in range(64)
    }
    return [family for family, outcomes in families.items() if 'allowed' in outcomes]


found['families'] = sockets(socket)
found['families of pairs'] = sockets(socketpair)
found['errors'] = {
    'vsock': opened(socket, 40, stream, 0),
    # The kernel looks at the lower half alone.
    'vsock above 32 bits': opened(socket, 0x1_0000_0028, stream, 0),
    'unix above 32 bits': opened(socket, 0x1_0000_0001, stream, 0),
    'alg': opened(socket, 38, sequenced, 0),
    'packet': opened(socket, 17, raw, 0),
    'audit': opened(socket, 16, raw, 9),
}
found['netlink protocols'] = [
    protocol for protocol in range(32) if opened(socket, 16, raw, protocol) == 'allowed'
]
found['internet'] = [
    [kind, protocol]
    for kind in range(16)
    for protocol in [0, 1, 6, 17, 33, 58, 115, 132, 136, 255, 256, 262]
    if opened(socket, 2, kind, protocol) == 'allowed'
]
# Of mount points, control groups, users; the lowest byte is the signal that tells of the child's end.
found['clone'] = sorted({outcome(lambda: native(clone, flag | 17, 0, 0, 0, 0)) for flag in [0x20000, 0x2000000, 0x10000000]})
found['personality'] = outcome(lambda: native(personality, 0x40_0000))
found['status'] = dict(
    line.split(':\t') for line in open('/proc/self/status').read().splitlines() if line.startswith('Seccomp')
)

if is_x86:
    x32 = 0x4000_0000
    found['x32'] = [outcome(lambda: native(x32 | number, 0, 0, 0)) for number in (39, socket, 425)]

    # A function that takes a number and three arguments to `int 0x80`: the kernel's 32-bit interface.
    code = bytes.fromhex('5389f889f387cacd805bc3')
    libc.mmap.restype = ctypes.c_void_p
    private_anonymous_32bit, read_write_run = 0x62, 7
    page = libc.mmap(None, 4096, read_write_run, private_anonymous_32bit, -1, 0)
    ctypes.memmove(page, code, len(code))
    old = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_uint] * 4)(page)
    vsock = page + 256
    ctypes.memmove(vsock, struct.pack('<3I', 40, stream, 0), 12)
    found['int 0x80'] = {
        'getpid': outcome(lambda: old(20, 0, 0, 0)),
        'socket': outcome(lambda: old(359, 40, stream, 0)),
        'socketcall': outcome(lambda: old(102, 1, vsock, 0)),
        'io_uring_setup': outcome(lambda: old(425, 0, 0, 0)),
        'bpf': outcome(lambda: old(357, 0, 0, 0)),
    }

    # A program of the 32-bit kind, which does nothing but end: exit(0).
    text = bytes.fromhex('31db31c040cd80')
    base = 0x0804_8000
    header = struct.pack('<HHIIIIIHHHHHH', 2, 3, 1, base + 84, 52, 0, 0, 52, 32, 1, 0, 0, 0)
    segment = struct.pack('<8I', 1, 0, base, base, 84 + len(text), 84 + len(text), 5, 4096)
    file, path = tempfile.mkstemp()
    os.write(file, b'\x7fELF\x01\x01\x01' + bytes(9) + header + segment + text)
    os.fchmod(file, 0o755)
    os.close(file)

    def run():
        try:
            os.execv(path, [path])
        except OSError as error:
            return -error.errno

    found['32-bit program'] = outcome(run)

print(json.dumps(found))
