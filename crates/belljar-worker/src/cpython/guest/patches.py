"""Patches for library parts that need something a cell does not have.

No sockets: asyncio's wake-up channel is a pipe. No sendmsg: asyncio sends on granted sockets without
it. No file locks: sqlite3 opens files without them. No
epoll: selectors poll. And json encodes a tool call that was not awaited as its value. Applied once,
in the zygote; each patch does the same thing by other means.
"""

import json
import os
import selectors
import urllib.parse

from .toolcall import ToolCall, value_of

# Errors of tasks that were not awaited, in the order they were found.
unretrieved = []
_loops_made = []


def apply() -> None:
    """Applies all of them."""
    selectors.DefaultSelector = selectors.PollSelector
    _patch_asyncio()
    _patch_sqlite()
    _patch_json()
    _limit_recursion()


class _PipeEnd:
    """The part of a socket's interface asyncio uses for its wake-up channel."""

    def __init__(self, fd: int):
        self._fd = fd

    def fileno(self) -> int:
        return self._fd

    def setblocking(self, _flag) -> None:
        """The pipe is non-blocking already."""

    def recv(self, size: int) -> bytes:
        return os.read(self._fd, size)

    def send(self, data: bytes) -> int:
        return os.write(self._fd, data)

    def detach(self) -> int:
        fd, self._fd = self._fd, -1
        return fd

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self.detach())


class _NoSockets:
    """Stands in for the module `socket` where asyncio makes the input of a subprocess."""

    def __init__(self, real):
        self._real = real

    def socketpair(self, *_arguments):
        return tuple(_PipeEnd(fd) for fd in os.pipe())

    def __getattr__(self, name):
        return getattr(self._real, name)


def _patch_asyncio() -> None:
    from asyncio import base_events, selector_events, unix_events

    def make_self_pipe(self):
        _loops_made.append(True)
        ends = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._ssock, self._csock = _PipeEnd(ends[0]), _PipeEnd(ends[1])
        self._internal_fds += 1
        self._add_reader(self._ssock.fileno(), self._read_from_self)

    real_handler = base_events.BaseEventLoop.default_exception_handler

    def default_exception_handler(self, context):
        error = context.get("exception")
        if error is not None and context.get("message") == "Task exception was never retrieved":
            unretrieved.append(error)
        else:
            real_handler(self, context)

    selector_events.BaseSelectorEventLoop._make_self_pipe = make_self_pipe
    base_events.BaseEventLoop.default_exception_handler = default_exception_handler
    unix_events.socket = _NoSockets(unix_events.socket)
    # Of Python 3.12 and newer, for what does not fit into the queue at once.
    selector_events._HAS_SENDMSG = False


def unhandled_task_error():
    """The error of the first task that failed and was not awaited, or None."""
    if not _loops_made:
        return None
    import gc

    gc.collect()
    if unretrieved:
        return unretrieved[0]
    for task in _known_tasks():
        if task.done() and not task.cancelled() and getattr(task, "_log_traceback", False):
            return task.exception()
    return None


def forget_tasks() -> None:
    """Forgets errors of tasks of earlier runs in the session."""
    if not _loops_made:
        return
    for task in _known_tasks():
        if task.done() and not task.cancelled():
            # Reading it marks it as handled.
            task.exception()
    unretrieved.clear()
    _loops_made.clear()


def _known_tasks():
    import asyncio.tasks

    known = getattr(asyncio.tasks, "_all_tasks", None) or getattr(
        asyncio.tasks, "_scheduled_tasks", ()
    )
    return list(known)


def _patch_sqlite() -> None:
    try:
        import sqlite3
        import sqlite3.dbapi2
    except ImportError:
        return
    real = sqlite3.connect

    def connect(database, *arguments, **options):
        # The eighth argument after the database has always been `uri`.
        is_uri = options.get("uri", arguments[6] if len(arguments) > 6 else False)
        target = _without_locks(database, is_uri)
        if target is None:
            return real(database, *arguments, **options)
        if len(arguments) > 6:
            arguments = (*arguments[:6], True, *arguments[7:])
        else:
            options["uri"] = True
        return real(target, *arguments, **options)

    connect.__doc__ = real.__doc__
    sqlite3.connect = sqlite3.dbapi2.connect = connect


def _patch_json() -> None:
    real = json.JSONEncoder.default

    def default(self, o):
        return value_of(o) if type(o) is ToolCall else real(self, o)

    default.__doc__ = real.__doc__
    json.JSONEncoder.default = default


def _without_locks(database, is_uri):
    """The same database as a URI that asks for no locks, None for one in memory."""
    if not isinstance(database, (str, bytes, os.PathLike)):
        return None
    path = os.fsdecode(os.fspath(database))
    if path in ("", ":memory:"):
        return None
    if is_uri and path.startswith("file:"):
        if ":memory:" in path or "mode=memory" in path or "nolock=" in path:
            return None
        return f"{path}{'&' if '?' in path else '?'}nolock=1"
    return f"file:{urllib.parse.quote(path)}?nolock=1"


def _limit_recursion() -> None:
    """Keeps deep recursion an error: before 3.12 it can exhaust the C stack and crash."""
    import sys

    if sys.version_info >= (3, 12):
        return
    real = sys.setrecursionlimit

    def setrecursionlimit(limit):
        real(min(limit, MAX_RECURSION) if isinstance(limit, int) else limit)

    sys.setrecursionlimit = setrecursionlimit


# At most about 700 bytes of C stack a level, of eight megabytes.
MAX_RECURSION = 10_000
