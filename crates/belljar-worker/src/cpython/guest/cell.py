"""A cell's main: say ready, take one run, answer, and wait to be ended; in a session, take run
after run, and become two between them."""

import sys

from .errors import guest_error
from .run import Prepared, Run, prepare_cell
from .wire import BRANCH, BRANCH_FRAMES, REROOT, RUN, Ended, Link, run_of

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


def cell_main(fd: int, lower_limits, work: str = WORK, branching=None) -> None:
    """Serves one run over the socket `fd`, or those of a session; returns when the host has closed
    it. In a session's cell, `branching` is what it takes to become two."""
    _reseed()
    link = Link(fd)
    prepared = prepare_cell(link, work)
    link.ready()
    try:
        if branching is None and not link.hears_within(PARKED_SECONDS):
            rehearse(work)
        while True:
            kind, head, body = link.receive_command()
            if kind == BRANCH:
                _branch(link, branching)
                continue
            if kind == REROOT:
                _reroot(link, branching)
                continue
            if kind != RUN:
                raise Ended
            head, code, context = run_of(head, body)
            body = None
            link.reopen()
            if not head.get("session"):
                break
            # The limits of the process are those of the session, which it was made with.
            _perform(Run(link, head, code, context, work, prepared), link)
    except (Ended, OSError):
        # The host is gone, or let go of a cell it never used.
        return
    try:
        lower_limits(head["limits"])
    except OSError as error:
        message = f"could not lower the limits of the run: {error}"
        link.failed(guest_error("sandbox.engine", message))
    else:
        _perform(Run(link, head, code, context, work, prepared), link)
    link.wait_for_end()


def _branch(link, branching) -> None:
    """Becomes two: the one that was told so says that there are, and goes on in another tree of
    files; the copy says that it is ready."""
    if branching is None:
        raise Ended
    link.is_branching = True
    try:
        is_copy = branching.branch(link.fd, *BRANCH_FRAMES)
    except OSError as error:
        link.is_branching = False
        link.not_branched(error.strerror)
        return
    link.is_branching = False
    if is_copy:
        _reseed()


def _reroot(link, branching) -> None:
    """Goes on in another tree of files."""
    if branching is None:
        raise Ended
    try:
        branching.reroot(link.fd)
    except OSError as error:
        link.not_branched(error.strerror)
    else:
        link.rerooted()


def _perform(run, link) -> None:
    try:
        run.settle()
        run.perform()
    except BaseException as error:  # guest code broke something the runtime stands on
        message = f"the runtime could not go on: {type(error).__name__}: {error}"
        link.failed(guest_error("runtime.thrown", message))


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
