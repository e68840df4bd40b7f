"""What the agents of escape.yaml attempt with. `refused` expects an attempt to fail, and notes in escaped.txt what did not."""

import ctypes
import os
import pathlib
import time

libc = ctypes.CDLL(None, use_errno=True)
workspace = pathlib.Path(os.environ["OFFSITE_WORKSPACE"])


def note(what):
    with open(workspace / "escaped.txt", "a") as file:
        file.write(what + "\n")
    print("NOT REFUSED:", what)


def tried():
    with open(workspace / "tried.txt", "a") as file:
        file.write("1\n")


def refused(what, attempt):
    """Makes the attempt in a child, so that what it changes ends with that; an OSError or False is a refusal."""
    tried()
    child = os.fork()
    if child == 0:
        allowed = False
        try:
            allowed = attempt() is not False
        except (OSError, ValueError) as error:
            print("refused:", what, error)
        os._exit(1 if allowed else 0)
    _, status = os.waitpid(child, 0)
    if os.waitstatus_to_exitcode(status) == 1:
        note(what)


def call(name, *arguments):
    """Calls a function of the C library; raises where it fails."""

    def attempt():
        if getattr(libc, name)(*arguments) == -1:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))

    return attempt


def system_call(number, *arguments):
    return call("syscall", ctypes.c_long(number), *arguments)


def opened_for_writing(path):
    """Opens the file and writes nothing."""
    return lambda: os.close(os.open(path, os.O_WRONLY))


def fill(path):
    """Writes 300 MB to the file, which is more than the sandbox may, and waits for somebody to notice."""
    tried()
    try:
        with open(path, "ab") as file:
            for _ in range(300):
                file.write(bytes(1024**2))
                file.flush()
                time.sleep(0.01)
        time.sleep(3)
        note("300 MB in " + path)
    except OSError as error:
        print("refused:", error)
    finally:
        os.truncate(path, 0)
