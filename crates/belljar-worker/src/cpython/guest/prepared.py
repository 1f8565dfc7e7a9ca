"""The parts that a run finds ready: streams, the capture of programs' output, reserved memory, the
session. The zygote makes them, before there is a cell."""

import mmap
import os
import sys
import threading
from os import chdir

from .capture import FdCapture
from .names import BuiltinNames
from .session import Session
from .streams import Streams
from .wire import Link

WORK = "/work"
# Freed when memory has run out, so that the error can still be reported. It is never written to, so
# it uses address space only.
RESERVE_BYTES = 2 << 20
# The original, before a run replaces it.
_os_system = os.system


class PreparedCell:
    """The parts that a run finds ready."""

    def __init__(self, link):
        self.streams = Streams(link)
        self.capture = FdCapture(link)
        self.system = _after(self.capture.start, _os_system)
        # Whether code is running, which may fork.
        self.is_running = False
        self.link = link
        self._reserve = None
        self._session = None
        self.names = BuiltinNames(link)

    def session_for(self, head: dict):
        """The session the run belongs to, None for a run of its own."""
        if not head.get("session"):
            return None
        if self._session is None:
            self._session = Session(self.link, self.names)
        self._session.begin()
        return self._session

    def put_aside(self) -> None:
        """Reserves some memory, if possible and not yet done."""
        if self._reserve is None or self._reserve.closed:
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
            try:
                self._reserve = mmap.mmap(-1, RESERVE_BYTES, flags)
            except OSError:
                self._reserve = None

    def free_reserve(self) -> None:
        """Frees the reserved memory."""
        if self._reserve is not None:
            self._reserve.close()

    def before_fork(self) -> None:
        """The code is about to fork: captures the output of its child."""
        if self.is_running:
            self.capture.start()

    def in_child(self) -> None:
        """In a child that the code forked: it must not send frames."""
        if self.is_running or threading.current_thread() is not threading.main_thread():
            self.link.forget()


def prepare_cell() -> "PreparedCell":
    """In the zygote: prepares streams, forks and reserved memory before there is a cell, over a
    link that leads nowhere yet."""
    prepared = PreparedCell(Link(None))
    prepared.streams.install(sys)
    os.register_at_fork(before=prepared.before_fork, after_in_child=prepared.in_child)
    prepared.put_aside()
    return prepared


def enter_cell(prepared: "PreparedCell", fd: int, work: str) -> None:
    """In a cell: its socket and its folder."""
    prepared.link.lead_to(fd)
    try:
        chdir(work)
    except OSError:
        pass
    if work != WORK:
        os.environ["HOME"] = work


def _after(first, then):
    def call(*arguments, **options):
        first()
        return then(*arguments, **options)

    call.__name__ = call.__qualname__ = getattr(then, "__name__", "call")
    return call
