"""The few files of `/proc` that libraries cannot do without, as texts made up here (A2).

A cell lets nobody open anything in `/proc`: it would tell of the host. Libraries read a handful of files
there all the same: threadpoolctl (scikit-learn) asks which native libraries are loaded, psutil how much
memory there is. `open` answers with what is true of the cell: the limits of the run, nothing of the machine,
and its own process where the kernel refuses to say. No rule of the jail is any wider for it. A program that
asks the kernel itself (`os.open`, native code, a child) is refused as before.
"""

import _io
import _thread
import builtins
import io
import os
import resource
import sys
import time

PROC = "/proc/"
_OWN = "/proc/self/"
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_real_open = builtins.open

_memory_bytes = 512 << 20
_began = 0.0


def apply() -> None:
    """In the zygote: puts `open` in the place of Python's."""
    builtins.open = io.open = open


def begin(memory_bytes: int) -> None:
    """A run begins, which may use so much memory."""
    global _memory_bytes, _began
    _memory_bytes = memory_bytes
    _began = _uptime()


def open(  # noqa: A001 - it is what code calls
    file,
    mode="r",
    buffering=-1,
    encoding=None,
    errors=None,
    newline=None,
    closefd=True,
    opener=None,
):
    path = None
    if type(file) is not int and opener is None and mode in ("r", "rb", "rt", "br"):
        path = _made_up_path(file)
    if path is None or path.startswith(_OWN):
        try:
            return _real_open(file, mode, buffering, encoding, errors, newline, closefd, opener)
        except OSError:
            if path is None:
                raise
    raw = _MadeUp(_FILES[path]().encode(), os.fspath(file))
    if "b" in mode:
        return raw
    return io.TextIOWrapper(raw, encoding or "utf-8", errors, newline)


open.__doc__ = _real_open.__doc__
open.__module__ = "io"
# The code whose frames say how a file was to be opened.
OPEN_CODE = open.__code__


class _MadeUp(_io.BytesIO):
    """A file that is not on any disk."""

    def __init__(self, data: bytes, name):
        super().__init__(data)
        self.name = name
        self.mode = "rb"


def _made_up_path(file):
    """The path of a file of `/proc` that can be made up, None for any other."""
    try:
        path = os.fsdecode(file)
    except TypeError:
        return None
    if not path.startswith(PROC):
        return None
    own = f"{PROC}{os.getpid()}/"
    if path.startswith(own):
        path = f"{_OWN}{path[len(own):]}"
    return path if path in _FILES else None


def _uptime() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _peak_kib() -> int:
    """The most memory the process has used. What it uses now only the kernel knows."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _maps() -> str:
    """A line for each native library that is loaded, in the form of the kernel's: the address where it
    begins, and its file as the cell sees it. How far it reaches is not said: one page each."""
    lines = []
    for base, name in _libraries():
        name = name or sys.executable
        name = "[vdso]" if name.startswith("linux-vdso") else name
        place = f"{base:012x}-{base + _PAGE:012x}"
        lines.append(f"{place} r-xp 00000000 00:00 0".ljust(73) + f"{name}\n")
    return "".join(lines)


def _libraries():
    """What the dynamic loader has loaded, from its own list: `struct link_map` of <link.h>."""
    import ctypes

    class LinkMap(ctypes.Structure):
        pass

    LinkMap._fields_ = [
        ("address", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("dynamic", ctypes.c_void_p),
        ("next", ctypes.POINTER(LinkMap)),
    ]
    # The handle of the program itself is the first entry, in glibc as in musl.
    entry = ctypes.cast(ctypes.c_void_p(ctypes.PyDLL(None)._handle), ctypes.POINTER(LinkMap))
    while entry:
        found = entry.contents
        yield found.address or 0, os.fsdecode(found.name or b"")
        entry = found.next


def _status() -> str:
    user, group = os.getuid(), os.getgid()
    peak = _peak_kib()
    lines = (
        ("Name", "python3"),
        ("State", "R (running)"),
        ("Tgid", os.getpid()),
        ("Pid", os.getpid()),
        ("PPid", os.getppid()),
        ("TracerPid", 0),
        ("Uid", "\t".join([str(user)] * 4)),
        ("Gid", "\t".join([str(group)] * 4)),
        ("VmPeak", f"{peak:8} kB"),
        ("VmSize", f"{peak:8} kB"),
        ("VmHWM", f"{peak:8} kB"),
        ("VmRSS", f"{peak:8} kB"),
        ("Threads", _thread._count() + 1),
        ("voluntary_ctxt_switches", 0),
        ("nonvoluntary_ctxt_switches", 0),
    )
    return "".join(f"{name}:\t{value}\n" for name, value in lines)


def _stat() -> str:
    times = os.times()
    spent = [int(seconds * _TICKS) for seconds in times[:4]]
    fields = [os.getppid(), os.getpid(), os.getpid(), 0, -1, 0, 0, 0, 0, 0, *spent]
    fields += [20, 0, _thread._count() + 1, 0, int(_began * _TICKS)]
    fields += [_peak_kib() * 1024, _peak_kib() * 1024 // _PAGE]
    fields += [0] * (52 - 3 - len(fields))
    return f"{os.getpid()} (python3) R {' '.join(map(str, fields))}\n"


def _statm() -> str:
    pages = _peak_kib() * 1024 // _PAGE
    return f"{pages} {pages} 0 0 0 {pages} 0\n"


def _meminfo() -> str:
    """The memory of the run: all it may use, and what is left of it."""
    total = _memory_bytes // 1024
    free = max(total - _peak_kib(), 0)
    amounts = dict.fromkeys(
        "Buffers Cached SwapCached Active Inactive SwapTotal SwapFree Shmem Slab SReclaimable".split(), 0
    )
    amounts = {"MemTotal": total, "MemFree": free, "MemAvailable": free, **amounts}
    return "".join(f"{name}:".ljust(16) + f"{value:8} kB\n" for name, value in amounts.items())


def _cpuinfo() -> str:
    count = os.cpu_count() or 1
    entry = "processor\t: {0}\nphysical id\t: 0\ncore id\t\t: {0}\ncpu cores\t: {1}\n\n"
    return "".join(entry.format(number, count) for number in range(count))


def _machine_stat() -> str:
    """As if nothing but this process ran."""
    times, count = os.times(), os.cpu_count() or 1
    user, system = int(times.user * _TICKS), int(times.system * _TICKS)
    idle = max(int(_uptime() * _TICKS) - user - system, 0)
    each = [f"cpu{number} 0 0 0 {idle} 0 0 0 0 0 0\n" for number in range(count)]
    begun = int(time.time() - _uptime())
    total = f"cpu  {user} 0 {system} {idle * count} 0 0 0 0 0 0\n"
    return f"{total}{''.join(each)}btime {begun}\nprocesses 1\nprocs_running 1\nprocs_blocked 0\n"


_FILES = {
    "/proc/self/maps": _maps,
    "/proc/self/status": _status,
    "/proc/self/stat": _stat,
    "/proc/self/statm": _statm,
    "/proc/self/cmdline": lambda: "python3\0",
    "/proc/self/comm": lambda: "python3\n",
    "/proc/meminfo": _meminfo,
    "/proc/cpuinfo": _cpuinfo,
    "/proc/stat": _machine_stat,
    "/proc/uptime": lambda: f"{_uptime():.2f} 0.00\n",
    "/proc/loadavg": lambda: "0.00 0.00 0.00 1/1 1\n",
}
