# What agents and their tools do every day; it ends at the first that does not work.
set -e
cd "$(mktemp -d)"

echo users; useradd --create-home worker; su worker -c 'id -un' | grep -qx worker
echo packages
mkdir -p tool/DEBIAN tool/usr/bin
printf 'Package: tool\nVersion: 1\nArchitecture: all\nMaintainer: me\nDescription: x\n' > tool/DEBIAN/control
printf '#!/bin/sh\necho works\n' > tool/usr/bin/tool; chmod +x tool/usr/bin/tool
dpkg-deb --build tool tool.deb > log; dpkg --install tool.deb > log; tool | grep -qx works
echo git; git init -q repo; git -C repo -c user.name=a -c user.email=a@b commit -q --allow-empty -m x; git clone -q repo copy
echo npm; mkdir package; (cd package; npm init -y > log; npm pack --silent | grep -q tgz)
echo personality; linux32 uname -m > log; setarch "$(uname -m)" true
echo node
node -e '
const { Worker } = require("node:worker_threads");
const { networkInterfaces } = require("node:os");
const { watch, writeFileSync } = require("node:fs");
if (networkInterfaces().lo === undefined) throw new Error("no interfaces");
watch(".", () => new Worker("process.exit(0)", { eval: true }).on("exit", () => process.exit(0)));
writeFileSync("seen", "");
setTimeout(() => process.exit(1), 30000);'
echo python
python3 - <<'END'
import asyncio, ctypes, fcntl, mmap, multiprocessing, os, shutil, signal, socket, subprocess, tempfile
from multiprocessing import shared_memory

assert multiprocessing.get_context('fork').Pool(2).map(abs, [-1, -2]) == [1, 2]
memory = shared_memory.SharedMemory(create=True, size=4096)
memory.unlink()
os.memfd_create('x')
socket.socketpair()
socket.if_nameindex()
with open('locked', 'w') as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    os.posix_fallocate(file.fileno(), 0, 4096)
os.mkfifo('pipe')
for family in (socket.AF_INET, socket.AF_INET6):
    loopback = '127.0.0.1' if family == socket.AF_INET else '::1'
    server = socket.create_server((loopback, 0), family=family)
    socket.create_connection(server.getsockname()[:2]).close()
    udp = socket.socket(family, socket.SOCK_DGRAM)
    udp.bind((loopback, 0))
unix = socket.socket(socket.AF_UNIX)
unix.bind('unix.sock')
# A debugger's way: the child asks to be traced, and stops where it starts another program.
libc = ctypes.CDLL(None, use_errno=True)
child = os.fork()
if child == 0:
    os._exit(1) if libc.ptrace(0, 0, 0, 0) else os.execv('/bin/true', ['true'])
_, status = os.waitpid(child, 0)
assert os.WIFSTOPPED(status) and os.WSTOPSIG(status) == signal.SIGTRAP
os.kill(child, signal.SIGKILL)
END
echo done
