"""Where in the agent's own code something happened (A7).

Tracebacks are Python's own, chained causes and groups included, without the frames of the runtime
and of libraries: an agent can only change its own lines.
"""

import asyncio
import os
import traceback

from .session import is_run_name

MAX_FRAMES = 60


class Source:
    """Which files are the agent's."""

    def __init__(self, file_name: str, work: str, code_name=None):
        self.file_name = file_name
        # The file name of this run's code in Python; in a session each run has its own.
        self.code_name = code_name or file_name
        self._is_session = code_name is not None
        self._folder = work if work.endswith(os.sep) else work + os.sep

    def path(self) -> str:
        """Where the code of this run would be, if it were a file."""
        return self._folder + self.file_name.rpartition(os.sep)[2]

    def owns(self, file_name: str) -> bool:
        return self.is_current(file_name) or self.is_earlier(file_name)

    def is_current(self, file_name: str) -> bool:
        """Whether it is this run's code, or a file of the workspace."""
        return file_name == self.code_name or file_name.startswith(self._folder)

    def is_earlier(self, file_name: str) -> bool:
        """Whether it is the code of an earlier run of the session."""
        return self._is_session and is_run_name(file_name) and file_name != self.code_name

    def shown(self, file_name: str) -> str:
        """The file name as the agent knows it."""
        return self.file_name if file_name == self.code_name else file_name


class Place:
    """A line of the agent's, 1-based, and the frame that was there."""

    __slots__ = ("line", "column", "file_name", "frame")

    def __init__(self, line, column=None, file_name=None, frame=None):
        self.line = line
        self.column = column
        self.file_name = file_name
        self.frame = frame


def place_of(error: BaseException, source: Source):
    """The innermost line of the agent's that the error passed through, or None."""
    return _innermost(error, source.owns)


def place_in_this_run(error: BaseException, source: Source):
    """The same, but only in the code of this run: a line of another run would be misread as one of
    this run."""
    return _innermost(error, source.is_current)


def _innermost(error: BaseException, owns):
    found = None
    for frame, line, instruction in steps(error.__traceback__):
        code = frame.f_code
        if owns(code.co_filename):
            found = Place(line, _column(code, instruction, line), code.co_filename, frame)
    return found


def place_of_frame(frame, source: Source):
    """The innermost line of the agent's below a running frame, or None."""
    while frame is not None:
        code = frame.f_code
        if source.owns(code.co_filename):
            column = _column(code, frame.f_lasti, frame.f_lineno)
            return Place(frame.f_lineno, column, code.co_filename, frame)
        frame = frame.f_back
    return None


def modules_passed(error: BaseException):
    """Names of the modules whose frames the error passed through, outermost first."""
    return [
        frame.f_globals.get("__name__", "") for frame, _, _ in steps(error.__traceback__)
    ]


def steps(step):
    """Frame, line and instruction of each step of a traceback, outermost first."""
    while step is not None:
        yield step.tb_frame, step.tb_lineno, step.tb_lasti
        step = step.tb_next


def _column(code, instruction: int, line: int):
    positions = getattr(code, "co_positions", None)
    if positions is None or instruction < 0:
        return None
    for index, (start_line, _, column, _) in enumerate(positions()):
        if index == instruction // 2:
            if column is None or start_line != line:
                return None
            return _characters(code.co_filename, line, column) + 1
    return None


def _characters(file_name: str, line: int, column: int) -> int:
    """Columns are counted in bytes of UTF-8; people count characters."""
    import linecache

    text = linecache.getline(file_name, line).encode("utf-8", "replace")
    return len(text[:column].decode("utf-8", "replace"))


def format_error(error: BaseException, source: Source) -> str:
    """The traceback, with the agent's frames only."""
    report = traceback.TracebackException.from_exception(error)
    _prune(report, source, set())
    text = "".join(report.format())
    # Without a frame of the agent's there is nothing below this line.
    return text.rstrip("\n")


def headline(error: BaseException) -> str:
    """`ValueError: bad`, as Python puts it."""
    kind = type(error)
    name = kind.__qualname__
    module = kind.__module__
    if isinstance(module, str) and module not in ("__main__", "builtins"):
        name = f"{module}.{name}"
    try:
        text = str(error)
    except BaseException:  # the agent's own __str__ may raise anything
        text = "<exception str() failed>"
    return f"{name}: {text}" if text else name


def _prune(report, source: Source, seen: set) -> None:
    if report is None or id(report) in seen:
        return
    seen.add(id(report))
    if isinstance(getattr(report, "filename", None), str):
        # A SyntaxError's.
        report.filename = source.shown(report.filename)
    frames = [frame for frame in report.stack if source.owns(frame.filename)]
    if len(frames) > MAX_FRAMES:
        half = MAX_FRAMES // 2
        frames = frames[:half] + frames[-half:]
    for frame in frames:
        frame.filename = source.shown(frame.filename)
    report.stack[:] = frames
    _prune(report.__cause__, source, seen)
    _prune(report.__context__, source, seen)
    for inner in getattr(report, "exceptions", None) or ():
        _prune(inner, source, seen)


def waiting_place(source):
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
            return Place(frame.f_lineno, None, frame.f_code.co_filename, frame)
    return None
