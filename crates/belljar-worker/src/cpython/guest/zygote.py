"""The zygote: becomes warm, then hands itself to the jail, which clones cells from it.

The jail is a shared library of the host program, loaded with `ctypes`; cells are cloned and
confined by its code, and come back here as `cell_main`.
"""

import ctypes
import json
import os
import sys

from . import forks

LIBRARY = "/belljar/libjail.so"
# The kind of the frame that says why no cell was made.
REFUSED = 66


class Hooks(ctypes.Structure):
    """Hooks around the cloning of cells; the library defines the layout."""

    _fields_ = [
        ("before_clone", ctypes.c_void_p),
        ("after_clone", ctypes.c_void_p),
        ("in_clone", ctypes.c_void_p),
        ("confined", ctypes.c_void_p),
        ("refused", ctypes.c_void_p),
        ("warm_further", ctypes.c_void_p),
    ]


class BranchFrames(ctypes.Structure):
    """The frames exchanged right after branching: a pointer and a length for each. The library
    defines the layout."""

    _fields_ = [
        ("in_parent", ctypes.c_char_p),
        ("in_parent_bytes", ctypes.c_size_t),
        ("in_child", ctypes.c_char_p),
        ("in_child_bytes", ctypes.c_size_t),
        ("reroot", ctypes.c_char_p),
        ("reroot_bytes", ctypes.c_size_t),
        ("rerooted", ctypes.c_char_p),
        ("rerooted_bytes", ctypes.c_size_t),
    ]


class Brancher:
    """Clones the guest and moves it to another tree of files."""

    def __init__(self, library):
        library.belljar_branch.argtypes = [ctypes.c_int, ctypes.POINTER(BranchFrames)]
        library.belljar_reroot.argtypes = [ctypes.c_int]
        library.belljar_why.restype = ctypes.c_char_p
        self._library = library

    def branch(self, fd: int, *frames: bytes) -> bool:
        """Returns whether this is the copy. Both processes have sent their frames by then, and the
        parent has moved to its new tree."""
        encoded = BranchFrames(*(part for frame in frames for part in (frame, len(frame))))
        return self._checked(self._library.belljar_branch(fd, ctypes.byref(encoded))) == 1

    def reroot(self, fd: int) -> None:
        self._checked(self._library.belljar_reroot(fd))

    def _checked(self, status: int) -> int:
        if status < 0:
            raise OSError(-status, self._library.belljar_why().decode("utf-8", "replace"))
        return status


def main(setup: str, handover: str) -> None:
    """Becomes a zygote for good. The library defines the content of `handover`."""
    wanted = json.loads(setup)
    sys.path[:] = ["/belljar/lib", *wanted["paths"]]
    sys.argv = [""]
    forks.keep()
    from . import wire
    from .cell import cell_main
    from .warm import warm, warm_further

    # Calls through PyDLL keep the interpreter's lock; this is the only thread.
    library = ctypes.PyDLL(LIBRARY)
    library.belljar_lower_limits.argtypes = [ctypes.c_uint64] * 4
    library.belljar_resume.argtypes = [ctypes.c_char_p, ctypes.POINTER(Hooks)]

    brancher = Brancher(library)

    def lower_limits(limits: dict) -> None:
        cpu_seconds = (limits["cpu_ms"] + 999) // 1000 + 1
        status = library.belljar_lower_limits(
            limits["memory_bytes"], cpu_seconds, limits["processes"], limits["open_files"]
        )
        if status != 0:
            raise OSError(status, os.strerror(status))

    @ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_int)
    def confined(fd: int, is_session: int) -> None:
        cell_main(fd, lower_limits, brancher=brancher if is_session else None)

    @ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p)
    def refused(fd: int, mechanism: bytes, message: bytes) -> None:
        head = {"mechanism": mechanism.decode(), "message": message.decode("utf-8", "replace")}
        os.write(fd, wire.frame(REFUSED, head))

    warmed = ctypes.CFUNCTYPE(None)(warm_further)

    def address(function) -> int:
        return ctypes.cast(function, ctypes.c_void_p).value

    hooks = Hooks(
        address(ctypes.pythonapi.PyOS_BeforeFork),
        address(ctypes.pythonapi.PyOS_AfterFork_Parent),
        address(ctypes.pythonapi.PyOS_AfterFork_Child),
        address(confined),
        address(refused),
        address(warmed),
    )
    warm(wanted["data"])
    library.belljar_resume(handover.encode(), ctypes.byref(hooks))
