"""The main function of a Python cell, as `cell.rs` is for the engines in Rust: report ready, take
one run, answer, and wait for the end. In a session it takes run after run and branches between
them."""

import os
import sys

from . import forks
from .errors import guest_error
from .prepared import enter_cell, prepare_cell
from .run import Run
from .wire import BRANCH, BRANCH_FRAMES, REROOT, RUN, HostGone, run_of

WORK = "/work"
# A cell that has waited this long for its code is parked.
PARKED_SECONDS = 0.001

# As small as possible: every page that a parked cell touches becomes its own memory.
_REHEARSAL_CODE = b"[1]"
# A limit of 0 sets no timer: a slow rehearsal must not be interrupted.
_REHEARSAL_HEAD = b"""{"file_name":"main.py","grants":{},"code_bytes":3,"limits":{"wall_ms":0,\
"cpu_ms":1000,"memory_bytes":536870912,"result_bytes":1048576,"processes":1,"open_files":16}}"""
# More than any cell has.
_NO_LIMITS = dict.fromkeys(("memory_bytes", "cpu_ms", "processes", "open_files"), 1 << 48)
# Prepared in the zygote; each cell is a copy of that process.
_prepared = None


def prepare() -> None:
    """In the zygote: makes or renews the parts that every cell finds ready."""
    global _prepared
    if _prepared is None:
        _prepared = prepare_cell()
    _prepared.names.remember()


def cell_main(fd: int, lower_limits, work: str = WORK, brancher=None) -> None:
    """Serves one run over the socket `fd`, or those of a session; returns when the host has closed
    it. In a session's cell, `brancher` clones the guest."""
    forks.reseed()
    prepared = _prepared
    link = prepared.link
    enter_cell(prepared, fd, work)
    forks.grant()
    link.ready()
    try:
        if brancher is None and not link.hears_within(PARKED_SECONDS):
            rehearse(work)
            # This lowers nothing; it only warms the call.
            lower_limits(_NO_LIMITS)
        while True:
            kind, head, body = link.receive_command()
            if kind == BRANCH:
                _branch(link, brancher)
                continue
            if kind == REROOT:
                _reroot(link, brancher)
                continue
            if kind != RUN:
                raise HostGone
            head, code, context = run_of(head, body)
            body = None
            link.reopen()
            if not head.get("session"):
                break
            # The process has the limits of its session already.
            _perform(Run(link, head, code, context, work, prepared), link)
    except (HostGone, OSError):
        # The host is gone, or dropped a cell that it never used.
        return
    try:
        lower_limits(head["limits"])
    except OSError as error:
        message = f"could not lower the limits of the run: {error}"
        link.failed(guest_error("sandbox.engine", message))
    else:
        _perform(Run(link, head, code, context, work, prepared), link)
    link.wait_for_end()


def _branch(link, brancher) -> None:
    """Clones the guest: the parent reports `Branched` and moves to another tree of files; the copy
    reports `Ready`."""
    if brancher is None:
        raise HostGone
    forks.suspend()
    try:
        is_copy = brancher.branch(link.fd, *BRANCH_FRAMES)
    except OSError as error:
        link.not_branched(error.strerror)
        return
    finally:
        forks.resume()
    if is_copy:
        forks.reseed()


def _reroot(link, brancher) -> None:
    """Moves the guest to another tree of files."""
    if brancher is None:
        raise HostGone
    try:
        brancher.reroot(link.fd)
    except OSError as error:
        link.not_branched(error.strerror)
    else:
        link.rerooted()


def _perform(run, link) -> None:
    try:
        run.settle()
        run.perform()
    except BaseException as error:  # guest code broke something the runtime stands on
        message = f"the runtime failed: {type(error).__name__}: {error}"
        link.failed(guest_error("runtime.thrown", message))


def rehearse(work: str = WORK) -> None:
    """Runs a small program whose frames go nowhere, so that the pages a run touches are warm."""
    link = _prepared.link
    main, fd = sys.modules.get("__main__"), link.fd
    own = sys.argv, os._exit, os.system
    link.lead_to(None)
    try:
        head, code, context = run_of(_REHEARSAL_HEAD, _REHEARSAL_CODE + b'{"a": [1]}')
        run = Run(link, head, code, context, work, _prepared)
        run.settle()
        run.perform()
    finally:
        link.lead_to(fd)
        sys.argv, os._exit, os.system = own
        if sys.path[:1] == [work]:
            # The directory belongs to guest code. The runtime must not import modules from there.
            del sys.path[0]
        if main is not None:
            sys.modules["__main__"] = main
