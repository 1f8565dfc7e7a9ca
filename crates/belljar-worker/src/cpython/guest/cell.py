"""A cell's main: say ready, take one run, answer, and wait to be ended."""

import sys

from .errors import guest_error
from .run import Prepared, Run, prepare_cell
from .wire import Ended, Link

WORK = "/work"
# A cell that has waited this long for its code is parked.
PARKED_SECONDS = 0.001

_REHEARSAL_HEAD = {
    "file_name": "main.py",
    "limits": {
        "memory_bytes": 1 << 29,
        "wall_ms": 1000,
        "cpu_ms": 1000,
        "result_bytes": 1 << 20,
        "processes": 1,
        "open_files": 16,
    },
    "grants": {},
}
# As little as shows the way: what a parked cell has touched is memory of its own.
_REHEARSAL_CODE = "[1]"


def cell_main(fd: int, lower_limits, work: str = WORK) -> None:
    """Serves one run over the socket `fd`; returns when the host has closed it."""
    _reseed()
    link = Link(fd)
    prepared = prepare_cell(link, work)
    link.ready()
    try:
        if not link.hears_within(PARKED_SECONDS):
            rehearse(work)
        head, code, context = link.receive_run()
    except (Ended, OSError):
        # The host is gone, or let go of a cell it never used.
        return
    try:
        lower_limits(head["limits"])
    except OSError as error:
        message = f"could not lower the limits of the run: {error}"
        link.failed(guest_error("sandbox.engine", message))
    else:
        run = Run(link, head, code, context, work, prepared)
        try:
            run.settle()
            run.perform()
        except BaseException as error:  # guest code broke something the runtime stands on
            message = f"the runtime could not go on: {type(error).__name__}: {error}"
            link.failed(guest_error("runtime.thrown", message))
    link.wait_for_end()


def rehearse(work: str = WORK) -> None:
    """Runs a small program whose frames go nowhere, so that what a run touches is warm."""
    kept = (sys.stdin, sys.stdout, sys.stderr, sys.__stdin__, sys.__stdout__, sys.__stderr__)
    main, path = sys.modules.get("__main__"), list(sys.path)
    try:
        link = Link(None)
        run = Run(link, _REHEARSAL_HEAD, _REHEARSAL_CODE, b'{"a": [1]}', work, Prepared(link))
        run.perform()
        run.rehearse_clock()
    finally:
        (sys.stdin, sys.stdout, sys.stderr, sys.__stdin__, sys.__stdout__, sys.__stderr__) = kept
        sys.path[:] = path
        sys.path_importer_cache.pop(work, None)
        if main is not None:
            sys.modules["__main__"] = main


def _reseed() -> None:
    """Cells are copies of one process: without this they would all draw the same numbers.

    `random` does so by itself in every copy.
    """
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()
