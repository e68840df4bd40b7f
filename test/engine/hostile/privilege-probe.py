# Tries what a sandbox must not allow, and prints what each attempt came to as one JSON object. Files are
# opened only, never written to; processes are seized only, never stopped; a mount that succeeded would be on
# an empty folder of its own.
import ctypes, errno, json, os, socket, tempfile

libc = ctypes.CDLL(None, use_errno=True)
folder = tempfile.mkdtemp().encode()
found = {}


def called(name, function, *arguments):
    """Calls it in a child, so that what it changes ends with that."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        result = function(*arguments)
        os.write(writer, b'allowed' if result != -1 else errno.errorcode[ctypes.get_errno()].encode())
        os._exit(0)
    os.close(writer)
    found[name] = os.read(reader, 100).decode()
    os.wait()


def attempted(name, function, *arguments):
    try:
        result = function(*arguments)
        os.close(result) if isinstance(result, int) else result.close()
        found[name] = 'allowed'
    except OSError as error:
        found[name] = errno.errorcode[error.errno]


def opened_for_writing(path):
    # What an engine hides is /dev/null there, which takes everything.
    if os.stat(path).st_rdev == os.makedev(1, 3):
        raise PermissionError(errno.EPERM, 'hidden')
    return os.open(path, os.O_WRONLY)


called('mount tmpfs', libc.mount, b'none', folder, b'tmpfs', 0, None)
called('mount bind', libc.mount, b'/etc', folder, None, 4096, None)
called('mount root again', libc.mount, b'none', b'/', None, 32, None)
called('mount taken off', libc.umount2, b'/proc/sys', 2)
called('mount pivot_root', libc.syscall, 155, folder, folder)
for name, flag in [('user', 0x10000000), ('mount', 0x20000), ('network', 0x40000000), ('process', 0x20000000)]:
    called(f'namespace unshare {name}', libc.unshare, flag)
called('namespace chroot', libc.chroot, folder)
called('namespace hostname', libc.sethostname, b'x', 1)
attempted('socket raw', socket.socket, socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
attempted('socket packet', socket.socket, socket.AF_PACKET, socket.SOCK_RAW, 0)
called('device block', libc.mknod, folder + b'/disk', 0o60600, os.makedev(254, 0))
called('device memory', libc.mknod, folder + b'/memory', 0o20600, os.makedev(1, 1))
if os.uname().machine == 'x86_64':
    for name, number, *arguments in [
        ('bpf', 321, 0, 0, 0),
        ('init_module', 175, 0, 0, b''),
        ('finit_module', 313, -1, b'', 0),
        ('clock_settime', 227, 0, None),
        ('settimeofday', 164, None, None),
        ('keyctl', 250, 0, -3, 0),
        ('perf_event_open', 298, None, 0, -1, -1, 0),
        ('userfaultfd', 323, 0),
        ('open_by_handle_at', 304, -100, None, 0),
        ('kexec_load', 246, 0, 0, None, 0),
        ('swapon', 167, folder, 0),
    ]:
        called(f'kernel {name}', libc.syscall, number, *arguments)
for path in [
    '/proc/sysrq-trigger',
    '/proc/sys/kernel/core_pattern',
    '/proc/sys/kernel/modprobe',
    '/proc/sys/vm/drop_caches',
    '/proc/sys/net/ipv4/ip_forward',
    '/proc/kcore',
    '/dev/mem',
    '/sys/kernel/uevent_helper',
    '/sys/fs/cgroup/memory/memory.limit_in_bytes',
    '/sys/fs/cgroup/memory/release_agent',
    '/sys/fs/cgroup/memory.max',
    '/sys/fs/cgroup/pids/pids.max',
]:
    attempted(f'write {path}', opened_for_writing, path)
called('init traced', libc.ptrace, 0x4206, 1, 0, 0)  # PTRACE_SEIZE, which does not stop it
print(json.dumps(found))
