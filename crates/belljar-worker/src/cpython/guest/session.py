"""The parts that runs of a session share, and the cleaning between two runs (B1).

All of them are the module `__main__`, and have Python's one table of builtins, which each run finds as
it should be. What a run was granted holds for functions of earlier runs too. The code of each run has
a file name of its own, by which its lines are found when one of its functions fails in a later run.
"""

import _thread
import asyncio
import linecache
import os
import sys
import threading
import time
import types
import weakref
from collections import deque

from . import patches

# For functions of older runs a traceback shows only line numbers.
MAX_SOURCES = 200
MAX_SOURCE_CHARS = 4 << 20

_RUN_NAME = "<run "


class Overdue(KeyboardInterrupt):
    """Raised at the present line when the time of code in a session is over. A KeyboardInterrupt,
    because event loops do not swallow it."""


class Session:
    """The state that outlives a run."""

    def __init__(self, link, names):
        self.main = types.ModuleType("__main__")
        self.code_name = ""
        self.figures = 0
        self._link = link
        self._names = names
        self._runs = 0
        self._sources = deque()
        self._source_chars = 0
        # Variables that are set as they were granted, and what was there before.
        self._in_force = {}
        self._before = {}

    def begin(self) -> None:
        """A run begins: output of threads of the last run is dropped."""
        self._runs += 1
        self.code_name = f"{_RUN_NAME}{self._runs}>"
        self._mute()
        asyncio._set_running_loop(None)
        patches.forget_tasks()
        # Python warns once per line; these are new lines.
        vars(self.main).pop("__warningregistry__", None)

    def _mute(self) -> None:
        if is_alone():
            self._link.muted = None
            return
        me = threading.current_thread()
        others = [one for one in threading.enumerate() if one is not me]
        self._link.muted = weakref.WeakSet(others) if others else None

    def remember(self, code: str) -> None:
        """Keeps the source lines of this run and drops those of old runs."""
        lines = code.splitlines(keepends=True)
        linecache.cache[self.code_name] = (len(code), None, lines, self.code_name)
        self._sources.append((self.code_name, len(code)))
        self._source_chars += len(code)
        while self._source_chars > MAX_SOURCE_CHARS or len(self._sources) > MAX_SOURCES:
            name, length = self._sources.popleft()
            self._source_chars -= length
            linecache.cache.pop(name, None)

    def grant(self, environment: dict) -> None:
        """Sets the variables of this run and removes those of the last one. Most often they are
        equal."""
        if environment == self._in_force:
            return
        for name, value in [*self._in_force.items()]:
            if environment.get(name) != value:
                self._take_back(name)
        for name, value in environment.items():
            if name not in self._in_force:
                self._before[name] = os.environ.get(name)
                self._in_force[name] = os.environ[name] = value
        if "TZ" in environment:
            time.tzset()

    def _take_back(self, name: str) -> None:
        del self._in_force[name]
        before = self._before.pop(name)
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
        if name == "TZ":
            time.tzset()

    def end(self) -> None:
        """The run is over: restores the process for the next one."""
        self._mute()
        self._names.restore()
        for name, value in [*self._in_force.items()]:
            if os.environ.get(name) != value:
                # The code has changed the value, which then stays.
                del self._in_force[name], self._before[name]


def is_alone() -> bool:
    """Whether the code has no thread but the first."""
    return _thread._count() == 0


def join_threads() -> None:
    """Waits for threads that are not daemons, as Python does before it ends."""
    if is_alone():
        return
    for finish in reversed(getattr(threading, "_threading_atexits", ())):
        finish()
    me = threading.current_thread()
    while True:
        others = [one for one in threading.enumerate() if one is not me and not one.daemon]
        if not others:
            return
        others[0].join()


def is_run_name(file_name: str) -> bool:
    """Whether this is the name of the code of some run of a session."""
    return file_name.startswith(_RUN_NAME)


def revive_pools() -> None:
    """After the threads of all pools were ended: pools that are made later have threads again."""
    pools = sys.modules.get("concurrent.futures.thread")
    if pools is not None:
        pools._shutdown = False
