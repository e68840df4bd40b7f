"""Searches the sandbox for a text: in every process's environment, arguments and memory of arguments, and in every file."""

import glob
import os


def search(text, into):
    """Notes each place that holds the text. Whoever calls puts the text together, so that the call does not find itself."""
    wanted = text.encode()
    found = []
    for path in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline"):
        if holds(path, wanted):
            found.append(path)
    for folder, folders, files in os.walk("/"):
        if folder == "/":
            folders[:] = [name for name in folders if name not in ("proc", "sys")]
        for name in files:
            path = os.path.join(folder, name)
            if os.path.isfile(path) and not os.path.islink(path) and holds(path, wanted):
                found.append(path)
    for path in found:
        print("FOUND:", path)
    with open("tried.txt", "w") as file:
        file.write("1")
    with open(into, "a") as file:
        file.writelines(path + "\n" for path in found)


def holds(path, wanted):
    try:
        with open(path, "rb") as file:
            return wanted in file.read()
    except OSError:
        return False
