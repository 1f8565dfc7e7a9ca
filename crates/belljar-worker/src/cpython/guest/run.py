"""One run: from the frame that asks for it to the frame that answers (A2, A9)."""

import _signal
import asyncio
import atexit
import builtins
import linecache
import logging
import os
import sys
import threading
import time
import types
from os import access, getpid
from time import monotonic

from . import absent, durable, figures, notebook, patches, procfs, restrict, state, trace
from .arrivals import Arrivals
from .calls import Calls
from .errors import AlarmExit, Failure, Reporter, guest_error
from .fetch import make_fetch
from .helpers import parse_context
from .node import NODE, Node
from .program import Program, binds
from .session import Overdue, is_alone, join_threads, revive_pools
from .toolnames import make_names
from .value import ValueProblem, encode, encode_as_shown
from .wire import utf8

WORK = "/work"
# The user that runs the code, as far as code can tell.
USER = "user"
# Files in here come back beside the value.
OUTPUT = "/work/out"
# Code of a session that continues after its time is interrupted again after this many seconds.
AGAIN_SECONDS = 0.05
# A signal that comes so much earlier than the clock was set is not the clock's.
ALARM_TOLERANCE_SECONDS = 0.02
# The status that a shell gives a program that SIGALRM has ended.
ALARM_STATUS = 128 + int(_signal.SIGALRM)
_NOT_VALUES = (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type)
# The originals, before a run replaces them.
_listdir = os.listdir
_os_exit = os._exit


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
        self._rings_at = 0.0
        self._code = code
        self._context = context
        self._pid = getpid()
        self._prepared = prepared
        self._session = prepared.session_for(head)
        self._is_over = False
        # In a session, the place of the code when its time was over.
        self._late = None
        self._file_name = head["file_name"]
        self._arguments = head.get("arguments", ())
        self._namespace = {}
        self._node = Node()
        code_name = self._session.code_name if self._session else None
        self.source = trace.Source(self._file_name, work, code_name)
        self.streams = prepared.streams
        self.capture = prepared.capture
        self.reporter = Reporter(self.source, self.limits, link, self.grants.get("paths", ()))

    def settle(self) -> None:
        """Prepares the process for this run: grants, forks, the clock."""
        granted = self.grants.get("env", {})
        if self._session:
            self._session.grant(granted)
        elif granted:
            os.environ.update(granted)
            if "TZ" in granted:
                time.tzset()
        sys.argv = [self._file_name, *self._arguments]
        os._exit = self._exit_process(_os_exit)
        os.system = self._prepared.system
        if self.grants.get("permissive") or "subprocess" in self.grants.get("modules", ()):
            self.capture.start()
        procfs.begin(self.limits["memory_bytes"])
        absent.begin(self.grants.get("network", "none"))
        self._set_clock(self.limits["wall_ms"] / 1000)

    def _set_clock(self, seconds: float) -> None:
        # The module underneath: `signal` itself makes enumerations of what are plain numbers.
        self._began = monotonic()
        _signal.signal(_signal.SIGALRM, self._overdue)
        self._ring_in(seconds)

    def _ring_in(self, seconds: float) -> None:
        self._rings_at = monotonic() + seconds
        _signal.setitimer(_signal.ITIMER_REAL, seconds)

    def perform(self) -> None:
        """Runs the code and answers."""
        if sys.stdout is not self.streams.out:
            self.streams.install(sys)
        self._prepared.is_running = True
        answer = self._answer()
        if getpid() != self._pid:
            # A child that the code forked reached the end of the program; it must not answer the
            # host.
            self.streams.flush()
            _os_exit(0 if answer[0] == "done" else 1)
        self.streams.flush()
        self.capture.stop()
        if self._session:
            figures.close_all()
        self._prepared.is_running = False
        # A thread that outlives the run must not read frames that come after the answer.
        is_clear = self._session and not is_alone()
        if is_clear:
            self._clear_away(answer)
        elif self._session and self._calls is not None:
            # Frames after the answer belong to the next run, even if threads still run.
            self._calls.refuse_more()
        # The host looks for files only if the guest reports them.
        if self.work == WORK and _has_files(WORK):
            self.link.artifact(WORK)
            if _is_there(OUTPUT) and os.path.isdir(OUTPUT):
                self.link.artifact(OUTPUT)
        self._report_attempts(answer)
        if answer[0] == "done":
            self.link.done(*answer[1:])
        else:
            self.link.failed(answer[1])
        if self._session and not is_clear:
            # Nothing waits for this work.
            self._clear_away(answer)

    def _report_attempts(self, answer) -> None:
        """Says for the log which hosts the code tried to reach, if it caught the errors."""
        is_told = answer[0] != "done" and answer[1].get("code") == "permission.network"
        for host in () if is_told else absent.attempts:
            self.link.denied(f"network: {host}")

    def _clear_away(self, answer) -> None:
        """Cleans the process for the next run of the session."""
        _signal.setitimer(_signal.ITIMER_REAL, 0)
        try:
            if self._calls is not None:
                self._calls.close()
        finally:
            self._session.end()
        if answer[0] == "done":
            self._prepared.put_aside()

    def _answer(self):
        try:
            encoded = self._run()
            self._is_over = True
            if self._late is not None:
                raise Overdue
            return ("done", encoded.json, encoded.lossy, encoded.cut)
        except BaseException as error:  # the host gets a report of every error
            self._is_over = True
            self._prepared.free_reserve()
            return self._failure(error)

    def _failure(self, error):
        _restore_recursion_limit()
        self._prepared.names.restore()
        for _ in range(2):
            try:
                return ("failed", self._error_of(error))
            except MemoryError:
                # The frames hold the objects that used up the memory.
                error = MemoryError()
                if not self._session:
                    self._namespace.clear()
            except BaseException as broken:  # raised by classes of the agent
                name = type(broken).__name__
                message = f"{type(error).__name__}: the error cannot be shown ({name})"
                return ("failed", guest_error("runtime.thrown", message))
        return ("failed", guest_error("limit.memory", "out of memory"))

    def _error_of(self, error) -> dict:
        if self._late is not None:
            # The timeout counts, however the code reacted to it.
            return self.reporter.overdue(*self._late)
        if isinstance(error, AlarmExit):
            return self.reporter.alarm(trace.told_place_of(error, self.source), ALARM_STATUS)
        if isinstance(error, SystemExit):
            report = self.reporter.exit(error, self.streams)
            self._run_exit_functions()
            return report
        report = self.reporter.thrown(error)
        if not isinstance(error, MemoryError):
            self._run_exit_functions()
        return report

    def _run(self):
        if self._session and self._durable:
            message = (
                "a run in a session cannot be durable: the journal does not record session state"
            )
            raise Failure(guest_error("request.invalid", message))
        self._make_main()
        restrict.import_from_workspace(self.work)
        program = self._compile()
        before = self._namespace.get("result")
        try:
            outcome = self._start(program)
        except SystemExit as error:
            if error.code not in (None, 0):
                raise
            outcome = None
        if before is not None and self._gives_result(program):
            before = None
        return self._finish(outcome, before)

    def _gives_result(self, program: Program) -> bool:
        """Whether the code assigns `result`, even its present value."""
        # Source without the word cannot assign it.
        return "result" in self._code and binds(program.tree, "result")

    def _make_main(self) -> None:
        """Makes the module the code runs as, or takes that of the session."""
        main = self._session.main if self._session else types.ModuleType("__main__")
        self._namespace = vars(main)
        self._calls = self._make_calls()
        names = make_names(self._calls)
        names["fetch"] = make_fetch(self._calls, self.link, self.grants)
        names[NODE] = lambda: self._node.begin(self._namespace, self._code)
        self._prepared.names.begin(self.grants, self.work, names)
        self._namespace["__builtins__"] = builtins
        self._namespace["__file__"] = self.source.path()
        self._namespace["context"] = self._parse_context()
        state.prepare(self._namespace)
        sys.modules["__main__"] = main

    def _make_calls(self) -> Calls:
        if self._durable is None:
            arrivals = Arrivals(self.link, may_outlive=self._session is not None)
            return Calls(self.link, self.source, self.limits, arrivals)
        inputs = durable.begin(self._durable, self.link)
        calls = Calls(self.link, self.source, self.limits, inputs, is_durable=True)
        inputs.deliver_to(calls)
        return calls

    def _parse_context(self):
        try:
            return parse_context(self._context)
        except (ValueError, RecursionError) as error:
            message = f"context is not valid JSON: {error}"
            raise Failure(guest_error("request.invalid", message)) from None
        finally:
            self._context = b""

    def _compile(self) -> Program:
        lines = self._code.splitlines(keepends=True)
        linecache.cache[self._file_name] = (len(self._code), None, lines, self._file_name)
        if self._session:
            self._session.remember(self._code)
        try:
            program = Program(self._code, self.source.code_name)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            program = self._as_notebook(error)
        self.reporter.program = program
        return program

    def _as_notebook(self, error) -> Program:
        """The code without lines that only a notebook has a use for, if that is all there is to it."""
        code, notes = notebook.without_magic(self._code)
        try:
            if code is None:
                raise error
            program = Program(code, self.source.code_name)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise Failure(self.reporter.syntax(error)) from None
        for note in notes:
            self.link.print("log", utf8(note))
        return program

    def _start(self, program: Program):
        if program.is_async:
            return asyncio.run(program.start(self._namespace))
        return program.start(self._namespace)

    def _finish(self, outcome, stale):
        """The end of a program that raised nothing, in the order Python ends: threads, value, exit
        functions. `stale` is the `result` of an earlier run, if this run assigned none."""
        failed_task = patches.unhandled_task_error()
        if failed_task is not None:
            raise Failure(self.reporter.thrown(failed_task, "runtime.unhandled_rejection"))
        join_threads()
        if self._session:
            revive_pools()
        self._save_figures()
        _restore_recursion_limit()
        if "builtins" in self._code:
            # The remaining work uses libraries, which share these names.
            self._prepared.names.restore()
        most = self.limits["result_bytes"]
        encoded = self._encoded(outcome, stale, most)
        if not self._node.is_one:
            encoded.lossy |= state.send(self.link, self._namespace, most)
        self._calls.finish()
        self._run_exit_functions()
        return encoded

    def _save_figures(self) -> None:
        paths = figures.save_all(self.work, self._session.figures if self._session else 0)
        for path in paths:
            self.link.artifact(path)
        if self._session:
            self._session.figures += len(paths)

    def _run_exit_functions(self) -> None:
        if self.link.fd is None or self._session:
            # In a rehearsal the exit functions must stay for the real run. In a session the program
            # does not end with the run.
            return
        if _exit_state() == _exit_state_of_ours:
            # The library's exit functions have nothing to do: there is no other thread, no other
            # stream, and no log handler that buffers records.
            return
        try:
            atexit._run_exitfuncs()
        except BaseException:  # Python prints it and continues to end
            sys.excepthook(*sys.exc_info())

    def _value(self, outcome, stale):
        if outcome is not None:
            if outcome.is_explicit:
                return self._node.gives(outcome.value)
            is_value = outcome.value is not None and self._node.takes(outcome.value)
            if is_value and not figures.is_artist(outcome.value):
                return self._node.gives(outcome.value)
        value = self._namespace.get("result")
        if stale is not None and value is stale:
            return None
        return self._node.gives(None if isinstance(value, _NOT_VALUES) else value)

    def _encoded(self, outcome, stale, most: int):
        """The value as JSON. One that nobody asked for by `return` need not have a form in JSON: then it
        is what a notebook would show, and the log says so."""
        is_explicit = outcome is not None and outcome.is_explicit
        value = self._value(outcome, stale)
        try:
            return encode(value, most)
        except ValueProblem as problem:
            if is_explicit or self._node.is_one or not problem.can_be_shown:
                raise
            self.link.print("log", utf8(f"[value] {problem.message}: its repr is given. {problem.hint}"))
            return encode_as_shown(value, most)

    def _overdue(self, _number, frame) -> None:
        if monotonic() < self._rings_at - ALARM_TOLERANCE_SECONDS:
            self._alarm(frame)
            return
        left = self._seconds_left()
        if left > 0:
            self._ring_in(max(left, 0.01))
        elif self._session:
            self._interrupt(frame)
        else:
            self.link.interrupt(lambda: self._report_overdue(frame))

    def _alarm(self, frame) -> None:
        """An alarm that the code has set went off, and it has no handler for it. Anywhere else that ends
        the program."""
        if self._is_over:
            return
        if self._session:
            raise AlarmExit(ALARM_STATUS)
        self.streams.flush()
        place = self._place_now(frame)[0]
        self.link.interrupt(lambda: self._report(self.reporter.alarm(place, ALARM_STATUS)))

    def _interrupt(self, frame) -> None:
        """Ends the code at its present line; the session stays alive."""
        if self._is_over:
            return
        self._ring_in(AGAIN_SECONDS)
        if self._calls is not None and self._calls.is_reading():
            # Never between a read from the socket and the thread that waits for that reply.
            return
        if self._late is None:
            self._late = self._place_now(frame)
        self.link.interrupt(self._raise_overdue)

    def _raise_overdue(self) -> None:
        if not self._is_over:
            raise Overdue

    def _seconds_left(self) -> float:
        """The seconds that the code may still take. While a call is open only the host counts,
        because only the host knows when its clock stops for a person."""
        on_its_way = self._calls.open_seconds() if self._calls is not None else 0.0
        used = monotonic() - self._began - on_its_way
        return self.limits["wall_ms"] / 1000 - used if on_its_way else 0.0

    def _report_overdue(self, frame) -> None:
        late = self._place_now(frame)
        self.streams.flush()
        self._report(self.reporter.overdue(*late))

    def _report(self, error: dict) -> None:
        """The last word of a process that does nothing more."""
        self.link.failed(error)
        self.link.block_for_ever()

    def _place_now(self, frame):
        """The place of the code now, and whether it only waits there."""
        place = trace.place_of_frame(frame, self.source)
        if place is not None:
            return place, False
        return trace.waiting_place(self.source), True

    def _exit_process(self, real):
        def _exit(status=0):
            if getpid() != self._pid or threading.current_thread() is not threading.main_thread():
                real(status)
            if self._session:
                # The process belongs to the session.
                raise SystemExit(status)
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
    """Sets the environment that all programs need."""
    global _exit_state_of_ours
    os.environ.clear()
    os.environ.update(
        PATH="/commands:/usr/local/bin:/usr/bin:/bin",
        HOME=WORK,
        TMPDIR="/tmp",
        LANG="C.UTF-8",
        USER=USER,
        LOGNAME=USER,
        MPLBACKEND="Agg",
        MPLCONFIGDIR="/tmp",
        # There are no locks between processes in a cell: without this it warns of that in every run.
        JOBLIB_MULTIPROCESSING="0",
    )
    sys.dont_write_bytecode = True
    _exit_state_of_ours = _exit_state()


_exit_state_of_ours = None


def _exit_state():
    """The number of exit functions and of log handlers to flush."""
    return atexit._ncallbacks(), len(logging._handlerList)


def _restore_recursion_limit() -> None:
    """Guest code may have left less stack than its exit functions need."""
    if sys.getrecursionlimit() < 1000:
        sys.setrecursionlimit(1000)


def _is_there(path: str) -> bool:
    return access(path, os.F_OK)


def _has_files(path: str) -> bool:
    try:
        return bool(_listdir(path))
    except OSError:
        return False
