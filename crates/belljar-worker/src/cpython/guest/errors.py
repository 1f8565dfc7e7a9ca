"""Turns a failed run into the error that the agent gets: code, message, place and hint (A7)."""

import errno
import os

from . import absent, hints, restrict, toolerrors, trace
from .value import ValueProblem, size

MAX_MESSAGE_BYTES = 8 * 1024
MAX_STACK_BYTES = 16 * 1024
MAX_HINT_BYTES = 4 * 1024
MAX_TOOL_NAME_BYTES = 2 * 1024
MAX_GRANT_BYTES = 2 * 1024

_SOCKET_MODULES = (
    "socket",
    "ssl",
    "http.client",
    "urllib.request",
    "asyncio.selector_events",
    f"{__package__}.absent",
)
_PROBE = "/tmp/.belljar-room"
_PROCESS_MODULES = ("subprocess", "multiprocessing.popen_fork", "pty")


class AlarmExit(SystemExit):
    """Ends the code of a session where an alarm went off that it has no handler for."""


class Failure(Exception):
    """An error that already has its message."""

    def __init__(self, error: dict):
        super().__init__(error["message"])
        self.error = error


def guest_error(
    code, message, *, stack=None, line=None, column=None, exit_code=None, hint=None, tool_name=None
):
    """An error as the wire has it, within the caps of its head."""
    error = {
        "code": code,
        "message": _head(message, MAX_MESSAGE_BYTES),
        "stack": _middle(stack, MAX_STACK_BYTES) if stack else None,
        "line": line if line and line > 0 else None,
        "column": column if column and column > 0 else None,
        "exit_code": exit_code,
        "hint": _head(hint, MAX_HINT_BYTES) if hint else None,
    }
    if tool_name:
        error["tool_name"] = _head(tool_name, MAX_TOOL_NAME_BYTES)
    grant = getattr(hint, "grant", None)
    if grant is not None:
        # The host says how to ask for it: only it knows who reads this.
        error["missing"] = {"kind": grant[0], "name": _head(grant[1], MAX_GRANT_BYTES)}
    return error


class Reporter:
    """Reports the failures of one run."""

    def __init__(self, source, limits: dict, link, granted=()):
        self.source = source
        self.limits = limits
        self.link = link
        self.program = None
        # Paths of the host that were granted.
        self.granted = granted

    def syntax(self, error: BaseException) -> dict:
        """The code does not compile."""
        if isinstance(error, (RecursionError, MemoryError)):
            return guest_error("syntax.invalid", "SyntaxError: the code is nested too deeply")
        if not isinstance(error, SyntaxError):
            return guest_error("syntax.invalid", f"SyntaxError: {error}")
        message = f"{type(error).__name__}: {error.msg}"
        stack = trace.format_error(error.with_traceback(None), self.source)
        return guest_error(
            "syntax.invalid",
            message,
            stack=stack,
            line=error.lineno,
            column=error.offset,
            hint=hints.for_syntax(error),
        )

    def thrown(self, error: BaseException, code: str = "runtime.thrown") -> dict:
        """The code raised this and did not handle it."""
        if isinstance(error, Failure):
            return error.error
        if isinstance(error, ValueProblem):
            return guest_error(error.code, error.message, hint=error.hint)
        if isinstance(error, MemoryError):
            return self._placed(error, "limit.memory", self._out_of_memory(), hints.MEMORY)
        if isinstance(error, RecursionError):
            code = "runtime.stack_overflow"
            return self._placed(error, code, trace.headline(error), hints.STACK_OVERFLOW)
        if isinstance(error, restrict.Refusal):
            hint = hints.Hint(restrict.hint_for(error), "modules", error.grant)
            return self._placed(error, "permission.module", trace.headline(error), hint)
        cause = toolerrors.cause_of(error)
        if cause is not None:
            return self._of_tool(error, cause)
        refused = self._refused(error)
        if refused is not None:
            return self._placed(error, refused[0], trace.headline(error), refused[1])
        place = trace.place_of(error, self.source)
        tree = self.program.tree if self.program is not None else None
        hint = hints.for_error(error, place, tree, self.source, self.granted)
        return self._placed(error, code, trace.headline(error), hint)

    def exit(self, error: SystemExit, streams) -> dict:
        """The code ended itself with a status other than 0."""
        status = error.code
        if isinstance(status, int):
            message = f"SystemExit: the code ended itself with status {int(status)}"
            return self._placed(error, "runtime.exit", message, None, int(status) & 0xFF)
        # Python prints anything else and exits with 1.
        text = _text_of(status)
        streams.err.write(f"{text}\n")
        return self._placed(error, "runtime.exit", f"SystemExit: {text}", None, 1)

    def alarm(self, place, status: int) -> dict:
        """An alarm that the code has set went off here, and there is no handler for it."""
        message = "SIGALRM ended the code: signal.alarm() or setitimer() went off without a handler"
        line, column = (place.line, place.column) if place is not None else (None, None)
        return guest_error(
            "runtime.exit", message, line=line, column=column, exit_code=status, hint=hints.ALARM
        )

    def overdue(self, place, is_waiting: bool) -> dict:
        """The run reached its wall-clock limit at this place."""
        message = f"timed out: the run went over its {self.limits['wall_ms']} ms of wall time"
        line = column = stack = None
        if place is not None:
            message += f", at line {place.line}"
            if self.source.is_earlier(place.file_name):
                message += f" of {place.file_name}"
            else:
                line, column = place.line, place.column
            stack = f'  File "{self.source.shown(place.file_name)}", line {place.line}'
        hint = hints.TIMEOUT_WAITING if is_waiting else hints.TIMEOUT_RUNNING
        return guest_error(
            "limit.timeout", message, stack=stack, line=line, column=column, hint=hint
        )

    def _of_tool(self, error, cause) -> dict:
        """A tool call failed uncaught; the error is the cause, or a group with it."""
        code, hint, tool_name, line = toolerrors.details(cause)
        message = trace.headline(error)
        if cause is not error:
            message = f"{message}: {trace.headline(cause)}"
        result = self._placed(error, code, message, hint, tool_name=tool_name)
        # Without a place in the traceback the call was not awaited: use the line that made it.
        result["line"] = result["line"] or line
        return result

    def _out_of_memory(self) -> str:
        return f"out of memory: the limit is {size(self.limits['memory_bytes'])}"

    def _placed(self, error, code, message, hint, exit_code=None, tool_name=None) -> dict:
        place = trace.place_in_this_run(error, self.source)
        line = column = None
        if place is not None:
            line, column = place.line, place.column
        try:
            stack = trace.format_error(error, self.source)
        except (MemoryError, RecursionError):
            stack = None
        return guest_error(
            code,
            message,
            stack=stack,
            line=line,
            column=column,
            exit_code=exit_code,
            hint=hint,
            tool_name=tool_name,
        )

    def _refused(self, error):
        """Code and hint for refusals and limits of the cell itself, None for other errors."""
        cause = _os_error(error)
        if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
            return "limit.processes", hints.processes(self.limits)
        if cause is None:
            return None
        if _is_lock_of_processes(cause):
            return "permission.host", hints.PROCESS_LOCKS
        modules = trace.modules_passed(cause) + trace.modules_passed(error)
        number = cause.errno
        if number in (errno.ENOSPC, errno.EDQUOT):
            return _full_limit(), hints.DISK
        if number == errno.EMFILE:
            return "limit.open_files", hints.OPEN_FILES
        if number == errno.EAGAIN and not _has_path(cause):
            if any(name in _PROCESS_MODULES for name in modules) or _is_fork(error, self):
                return "limit.processes", hints.processes(self.limits)
        if _is_network(cause, number, modules):
            self.link.denied(self._attempt(error))
            return "permission.network", absent.hint(hints.network(absent.grantable()))
        if hints.is_ungranted(cause, self.granted):
            # The code gets Python's own FileNotFoundError; the host logs the attempt.
            self.link.denied(self._attempt(error))
        if number not in (errno.EPERM, errno.EACCES, errno.EROFS):
            return None
        self.link.denied(self._attempt(error))
        if any(name in _PROCESS_MODULES for name in modules):
            return "permission.command", hints.command(cause)
        if _has_path(cause):
            return "permission.file", hints.for_file(cause)
        return "permission.host", hints.HOST

    def _attempt(self, error) -> str:
        """The agent's line that made the attempt."""
        place = trace.place_of(error, self.source)
        return (place and hints.line_text(place)) or trace.headline(error)


def _full_limit() -> str:
    """The limit behind a full disk: a directory needs an inode but no bytes."""
    try:
        os.mkdir(_PROBE)
    except OSError as error:
        return "limit.inodes" if error.errno == errno.ENOSPC else "limit.disk"
    os.rmdir(_PROBE)
    return "limit.disk"


def _os_error(error):
    """The error of the operating system behind an error, such as that of an HTTP library."""
    for _ in range(10):
        if isinstance(error, OSError) and error.errno is not None:
            return error
        reason = getattr(error, "reason", None)
        if isinstance(reason, OSError):
            error = reason
        elif error.__cause__ is not None:
            error = error.__cause__
        elif error.__context__ is not None and isinstance(error, OSError):
            error = error.__context__
        else:
            return None
    return None


def _is_network(cause, number, modules) -> bool:
    if type(cause).__name__ in ("gaierror", "herror"):
        return True
    refusals = (errno.EPERM, errno.EACCES, errno.ENETUNREACH, errno.EAFNOSUPPORT)
    return number in refusals and any(name in _SOCKET_MODULES for name in modules)


def _is_lock_of_processes(cause) -> bool:
    """Whether a lock between processes could not be made: the cell has no place for them."""
    return "multiprocessing.synchronize" in trace.modules_passed(cause) and not _has_path(cause)


def _is_fork(error, reporter) -> bool:
    place = trace.place_of(error, reporter.source)
    return place is not None and "fork" in (hints.line_text(place) or "")


def _has_path(error) -> bool:
    return isinstance(error.filename, (str, bytes))


def _text_of(value) -> str:
    try:
        return str(value)
    except Exception:
        return f"<{type(value).__name__}>"


def _head(text: str, room: int) -> str:
    data = text.encode("utf-8", "replace")
    return text if len(data) <= room else data[:room].decode("utf-8", "ignore") + "…"


def _middle(text: str, room: int) -> str:
    """Cuts the middle out: both ends of a traceback say more."""
    data = text.encode("utf-8", "replace")
    if len(data) <= room:
        return text
    first, last = data[: room // 3], data[-(room // 2) :]
    return f"{first.decode('utf-8', 'ignore')}\n…\n{last.decode('utf-8', 'ignore')}"
