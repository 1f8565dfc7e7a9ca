"""Plays the zygote for the tests: warms the runtime, forks a cell for each connection."""

import os
import sys

guest, folder, kind = sys.argv[1:]
package = os.path.join(folder, "package")
os.makedirs(package, exist_ok=True)
link = os.path.join(package, "belljar_guest")
if not os.path.islink(link):
    os.symlink(guest, link)
sys.path.insert(0, package)

from belljar_guest import forks  # noqa: E402

forks.keep()
import resource  # noqa: E402
import select  # noqa: E402
import shutil  # noqa: E402
import socket  # noqa: E402
import tempfile  # noqa: E402

from belljar_guest.cell import cell_main  # noqa: E402
from belljar_guest.warm import warm, warm_further  # noqa: E402

warm(kind == "data")
warm_further()


def lower_limits(limits):
    if limits["open_files"] == 0:
        raise OSError(22, "Invalid argument")
    memory = limits["memory_bytes"]
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


listener = socket.socket(socket.AF_UNIX)
listener.bind(os.path.join(folder, "socket"))
listener.listen(16)
threads = len(os.listdir("/proc/self/task"))
os.write(1, f"warm, {threads} thread{'s'[threads == 1:]}\n".encode())

while True:
    ready, _, _ = select.select([listener, 0], [], [])
    if 0 in ready:
        shutil.rmtree(folder, ignore_errors=True)
        break
    connection, _ = listener.accept()
    if os.fork() == 0:
        listener.close()
        work = tempfile.mkdtemp(dir=folder)
        cell_main(connection.fileno(), lower_limits, work)
        shutil.rmtree(work, ignore_errors=True)
        os._exit(0)
    connection.close()
