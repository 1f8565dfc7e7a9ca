"""Plays the zygote for the tests: warms the runtime, forks a cell for each connection."""

import os
import resource
import select
import shutil
import socket
import sys
import tempfile

guest, folder, kind = sys.argv[1:]
package = os.path.join(folder, "package")
os.makedirs(package, exist_ok=True)
link = os.path.join(package, "belljar_guest")
if not os.path.islink(link):
    os.symlink(guest, link)
sys.path.insert(0, package)

import belljar_guest  # noqa: E402

belljar_guest.warm(kind == "data")
belljar_guest.warm_further()


def lower_limits(limits):
    if limits["open_files"] == 0:
        raise OSError(22, "Invalid argument")
    memory = limits["memory_bytes"]
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


listener = socket.socket(socket.AF_UNIX)
listener.bind(os.path.join(folder, "socket"))
listener.listen(16)
threads = len(os.listdir("/proc/self/task"))
print(f"warm, {threads} thread{'s'[threads == 1:]}", flush=True)

while True:
    ready, _, _ = select.select([listener, sys.stdin], [], [])
    if sys.stdin in ready:
        shutil.rmtree(folder, ignore_errors=True)
        break
    connection, _ = listener.accept()
    if os.fork() == 0:
        listener.close()
        work = tempfile.mkdtemp(dir=folder)
        belljar_guest.cell_main(connection.fileno(), lower_limits, work)
        shutil.rmtree(work, ignore_errors=True)
        os._exit(0)
    connection.close()
