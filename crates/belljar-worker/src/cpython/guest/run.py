"""One run: from the frame that asks for it to the frame that answers (A2, A9)."""

import _signal
import asyncio
import atexit
import linecache
import logging
import mmap
import os
import sys
import threading
import time
import types
from os import getpid
from time import monotonic

from . import durable, figures, patches, restrict, trace
from .arrivals import Arrivals
from .calls import Calls
from .capture import FdCapture
from .errors import Failure, Reporter, guest_error
from .helpers import make_helpers, parse_context
from .program import SETTLE, STAR_IMPORT, Program, star_import
from .streams import Streams
from .toolcall import settle
from .toolnames import make_names
from .value import encode

WORK = "/work"
# Files in here come back beside the value.
OUTPUT = "/work/out"
# Freed when memory has run out, so that there is some to say so with. Never written to, so it
# takes up address space only.
RESERVE_BYTES = 2 << 20
_NOT_VALUES = (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type)


class Run:
    """A run of guest code. It is used once."""

    def __init__(self, link, head: dict, code: str, context: bytes, work: str, prepared):
        self.link = link
        self.limits = head["limits"]
        self.grants = head["grants"]
        self.work = work
        self._durable = head.get("durable")
        self._calls = None
        self._began = 0.0
        self._code = code
        self._context = context
        self._pid = getpid()
        self._reserve = prepared.reserve
        self._file_name = head["file_name"]
        self._namespace = {}
        self.source = trace.Source(self._file_name, work)
        self.streams = prepared.streams
        self.capture = prepared.capture
        self.reporter = Reporter(self.source, self.limits, link)

    def settle(self) -> None:
        """Makes the process that of this run: what it was granted, forks, the clock."""
        granted = self.grants.get("env")
        if granted:
            os.environ.update(granted)
            if "TZ" in granted:
                time.tzset()
        sys.argv = [self._file_name]
        os._exit = self._exit_process(os._exit)
        os.system = _after(self.capture.start, os.system)
        if self.grants.get("permissive") or "subprocess" in self.grants.get("modules", ()):
            self.capture.start()
        self._set_clock(self.limits["wall_ms"] / 1000)

    def rehearse_clock(self) -> None:
        """Sets the clock and stops it at once."""
        self._set_clock(0)

    def _set_clock(self, seconds: float) -> None:
        # The module underneath: `signal` itself makes enumerations of what are plain numbers.
        self._began = monotonic()
        _signal.signal(_signal.SIGALRM, self._overdue)
        _signal.setitimer(_signal.ITIMER_REAL, seconds)

    def perform(self) -> None:
        """Runs the code and answers."""
        if sys.stdout is not self.streams.out:
            self.streams.install(sys)
        answer = self._answer()
        if getpid() != self._pid:
            # A child the code forked came to the end of the program: it is none of the host's.
            self.streams.flush()
            os._exit(0 if answer[0] == "done" else 1)
        self.streams.flush()
        self.capture.stop()
        if self.work == WORK and os.path.isdir(OUTPUT):
            # The host does not look for files unless it is told of them.
            self.link.artifact(OUTPUT)
        if answer[0] == "done":
            self.link.done(*answer[1:])
        else:
            self.link.failed(answer[1])

    def _answer(self):
        try:
            encoded = self._run()
            return ("done", encoded.json, encoded.lossy, encoded.cut)
        except BaseException as error:  # whatever it is, it is what the host is told
            if self._reserve is not None:
                self._reserve.close()
            return self._failure(error)

    def _failure(self, error):
        _restore_recursion_limit()
        for _ in range(2):
            try:
                return ("failed", self._told(error))
            except MemoryError:
                # The frames hold what used up the memory.
                error = MemoryError()
                self._namespace.clear()
            except BaseException as broken:  # what the agent's classes raise meanwhile
                name = type(broken).__name__
                message = f"{type(error).__name__}: the error could not be shown ({name})"
                return ("failed", guest_error("runtime.thrown", message))
        return ("failed", guest_error("limit.memory", "out of memory"))

    def _told(self, error) -> dict:
        if isinstance(error, SystemExit):
            return self.reporter.exit(error, self.streams)
        told = self.reporter.thrown(error)
        if not isinstance(error, MemoryError):
            self._run_exit_functions()
        return told

    def _run(self):
        table = restrict.guest_builtins(self.grants, self.link)
        main = self._make_main(table)
        restrict.import_from_workspace(self.work, table)
        program = self._compile()
        try:
            outcome = self._start(program)
        except SystemExit as error:
            if error.code not in (None, 0):
                raise
            outcome = None
        return self._finish(main, outcome)

    def _make_main(self, table: dict):
        main = types.ModuleType("__main__")
        self._namespace = vars(main)
        real_import = table["__import__"]
        table[STAR_IMPORT] = star_import(self._namespace, real_import)
        table[SETTLE] = settle
        table.update(make_helpers(self.link, self.work))
        self._calls = self._make_calls()
        table.update(make_names(self._calls))
        self._namespace["__builtins__"] = table
        self._namespace["__file__"] = os.path.join(self.work, os.path.basename(self._file_name))
        self._namespace["context"] = self._parse_context()
        sys.modules["__main__"] = main
        return main

    def _make_calls(self) -> Calls:
        if self._durable is None:
            return Calls(self.link, self.source, self.limits, Arrivals(self.link))
        inputs = durable.begin(self._durable, self.link)
        calls = Calls(self.link, self.source, self.limits, inputs)
        inputs.deliver_to(calls)
        return calls

    def _parse_context(self):
        try:
            return parse_context(self._context)
        except (ValueError, RecursionError) as error:
            raise Failure(guest_error("request.invalid", f"context is not JSON: {error}")) from None
        finally:
            self._context = b""

    def _compile(self) -> Program:
        lines = self._code.splitlines(keepends=True)
        linecache.cache[self._file_name] = (len(self._code), None, lines, self._file_name)
        try:
            program = Program(self._code, self._file_name)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise Failure(self.reporter.syntax(error)) from None
        self.reporter.tree = program.tree
        return program

    def _start(self, program: Program):
        if program.is_async:
            return asyncio.run(program.start(self._namespace))
        return program.start(self._namespace)

    def _finish(self, main, outcome):
        """The end of a program that raised nothing, in the order Python ends: threads, value,
        exit functions."""
        failed_task = patches.unhandled_task_error()
        if failed_task is not None:
            raise Failure(self.reporter.thrown(failed_task, "runtime.unhandled_rejection"))
        _join_threads()
        for path in figures.save_all(self.work):
            self.link.artifact(path)
        _restore_recursion_limit()
        encoded = encode(self._value(outcome), self.limits["result_bytes"])
        self._calls.finish()
        self._run_exit_functions()
        return encoded

    def _run_exit_functions(self) -> None:
        if self.link.fd is None:
            # A rehearsal: the functions are still to be run by the real thing.
            return
        if _exit_state() == _exit_state_of_ours:
            # Those of the library have nothing to do: there is no thread, no stream but ours, and
            # no handler of the agent's that holds log records back.
            return
        try:
            atexit._run_exitfuncs()
        except BaseException:  # Python prints it and goes on ending
            sys.excepthook(*sys.exc_info())

    def _value(self, outcome):
        if outcome is not None:
            if outcome.is_explicit:
                return outcome.value
            if outcome.value is not None and not figures.is_artist(outcome.value):
                return outcome.value
        value = self._namespace.get("result")
        return None if isinstance(value, _NOT_VALUES) else value

    def _overdue(self, _number, frame) -> None:
        left = self._seconds_left()
        if left > 0:
            _signal.setitimer(_signal.ITIMER_REAL, max(left, 0.01))
        else:
            self.link.interrupt(lambda: self._report_overdue(frame))

    def _seconds_left(self) -> float:
        """Of the time the code may take. While a call is on its way the host counts alone: its
        clock stands still when a person is asked, and only the host knows."""
        on_its_way = self._calls.open_seconds() if self._calls is not None else 0.0
        used = monotonic() - self._began - on_its_way
        return self.limits["wall_ms"] / 1000 - used if on_its_way else 0.0

    def _report_overdue(self, frame) -> None:
        place = trace.place_of_frame(frame, self.source)
        is_waiting = place is None
        if is_waiting:
            place = _waiting_place(self.source)
        self.streams.flush()
        self.link.failed(self.reporter.overdue(place, is_waiting))
        self.link.block_for_ever()

    def _exit_process(self, real):
        def _exit(status=0):
            if getpid() != self._pid or threading.current_thread() is not threading.main_thread():
                real(status)
            self.streams.flush()
            if status:
                message = f"os._exit: the code ended itself with status {status}"
                code = int(status) & 0xFF
                self.link.failed(guest_error("runtime.exit", message, exit_code=code))
            else:
                self.link.done(b"null", False, False)
            self.link.wait_for_end()
            real(status)

        return _exit


def prepare_zygote() -> None:
    """What all runs have in common: the environment programs cannot do without."""
    global _exit_state_of_ours
    os.environ.clear()
    os.environ.update(
        PATH="/commands:/usr/local/bin:/usr/bin:/bin",
        HOME=WORK,
        TMPDIR="/tmp",
        LANG="C.UTF-8",
        MPLBACKEND="Agg",
        MPLCONFIGDIR="/tmp",
    )
    sys.dont_write_bytecode = True
    _exit_state_of_ours = _exit_state()


class Prepared:
    """What a run finds ready."""

    def __init__(self, link):
        self.streams = Streams(link)
        self.capture = FdCapture(link)
        self.reserve = None


def prepare_cell(link, work: str) -> Prepared:
    """What can be done before there is a run: folder, streams, forks, some memory put aside."""
    try:
        os.chdir(work)
    except OSError:
        pass
    if work != WORK:
        os.environ["HOME"] = work
    prepared = Prepared(link)
    prepared.streams.install(sys)
    os.register_at_fork(before=prepared.capture.start, after_in_child=link.forget)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    prepared.reserve = mmap.mmap(-1, RESERVE_BYTES, flags)
    return prepared


_exit_state_of_ours = None


def _exit_state():
    """How much there is to do when a program ends: exit functions, log handlers to flush."""
    return atexit._ncallbacks(), len(logging._handlerList)


def _restore_recursion_limit() -> None:
    """Guest code may have left less room than its own end takes."""
    sys.setrecursionlimit(max(1000, sys.getrecursionlimit()))


def _after(first, then):
    def call(*arguments, **options):
        first()
        return then(*arguments, **options)

    call.__name__ = call.__qualname__ = getattr(then, "__name__", "call")
    return call


def _join_threads() -> None:
    """Waits for threads that are no daemons, as Python does before it ends."""
    if threading.active_count() == 1:
        return
    for finish in reversed(getattr(threading, "_threading_atexits", ())):
        finish()
    me = threading.current_thread()
    while True:
        others = [one for one in threading.enumerate() if one is not me and not one.daemon]
        if not others:
            return
        others[0].join()


def _waiting_place(source):
    """Where the tasks of the running loop wait, if any is at a line of the agent's."""
    loop = asyncio._get_running_loop()
    for task in sorted(asyncio.all_tasks(loop), key=lambda task: task.get_name()) if loop else ():
        frame, coroutine = None, task.get_coro()
        while coroutine is not None:
            below = getattr(coroutine, "cr_frame", None)
            if below is not None and source.owns(below.f_code.co_filename):
                frame = below
            coroutine = getattr(coroutine, "cr_await", None)
        if frame is not None:
            return trace.Place(frame.f_lineno, None, frame.f_code.co_filename, frame)
    return None
