"""What the runs of a session share, and what is cleared away between two of them (B1).

All of them are the module `__main__`, and have one table of builtins: functions hold on to theirs
from the moment they are made, so each run changes the table in place, and what it was granted holds
for functions of earlier runs too. The code of each run has a file name of its own, by which its
lines are found when one of its functions fails in a later run.
"""

import _thread
import asyncio
import builtins
import linecache
import os
import sys
import threading
import time
import types
import weakref
from collections import deque

from . import patches

# Functions of runs that are longer ago are told with the numbers of their lines only.
MAX_SOURCES = 200
MAX_SOURCE_CHARS = 4 << 20

_RUN_NAME = "<run "


class Overdue(KeyboardInterrupt):
    """Raised where the code of a session is when its time is up. Of that kind, because event loops
    let such pass."""


class Session:
    """What outlives a run."""

    def __init__(self, link):
        self.main = types.ModuleType("__main__")
        self.code_name = ""
        self.figures = 0
        self._link = link
        self._runs = 0
        self._sources = deque()
        self._source_chars = 0
        self._builtins = {}
        # What guest code has in there that is not Python's, and for which terms that was made.
        self._own_builtins = {}
        self._terms = None
        # Variables that are set as they were granted, and what was there before.
        self._in_force = {}
        self._before = {}

    def begin(self) -> None:
        """A run begins: whatever the last one has left running is not heard in it."""
        self._runs += 1
        self.code_name = f"{_RUN_NAME}{self._runs}>"
        self._mute()
        asyncio._set_running_loop(None)
        patches.forget_tasks()
        # A warning is given once for each line; these lines are other ones.
        vars(self.main).pop("__warningregistry__", None)

    def _mute(self) -> None:
        if is_alone():
            self._link.muted = None
            return
        me = threading.current_thread()
        others = [one for one in threading.enumerate() if one is not me]
        self._link.muted = weakref.WeakSet(others) if others else None

    def remember(self, code: str) -> None:
        """Keeps the lines of this run, and lets go of those that are too long ago."""
        lines = code.splitlines(keepends=True)
        linecache.cache[self.code_name] = (len(code), None, lines, self.code_name)
        self._sources.append((self.code_name, len(code)))
        self._source_chars += len(code)
        while self._source_chars > MAX_SOURCE_CHARS or len(self._sources) > MAX_SOURCES:
            name, length = self._sources.popleft()
            self._source_chars -= length
            linecache.cache.pop(name, None)

    def builtins_for(self, terms, make) -> dict:
        """The table of builtins, with what `make` gives in it. What was made for a run of the same
        terms holds for this one too."""
        if terms != self._terms:
            self._own_builtins, self._terms = make(), terms
            self._renew_builtins()
        return self._builtins

    def _renew_builtins(self) -> None:
        """Whatever code has put in their places."""
        self._builtins.update(vars(builtins))
        self._builtins.update(self._own_builtins)

    def grant(self, environment: dict) -> None:
        """Sets variables for this run, and takes back those of the last one. Most often they are
        the same."""
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
        """The run is over: the next one finds everything in its place."""
        self._mute()
        self._renew_builtins()
        for name, value in [*self._in_force.items()]:
            if os.environ.get(name) != value:
                # The code has put something else there, which stays.
                del self._in_force[name], self._before[name]


def is_alone() -> bool:
    """Whether the code has no thread but the first."""
    return _thread._count() == 0


def is_run_name(file_name: str) -> bool:
    """Whether this is the name of the code of some run of a session."""
    return file_name.startswith(_RUN_NAME)


def revive_pools() -> None:
    """After the threads of all pools were ended: pools that are made later have threads again."""
    pools = sys.modules.get("concurrent.futures.thread")
    if pools is not None:
        pools._shutdown = False
