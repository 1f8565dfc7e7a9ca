"""Event loops in a durable run.

A loop with nothing to do takes exactly one input. Tasks and futures are numbered, so that sets of
them have the same order in every run; by themselves they are hashed by their address.
"""

import selectors
from itertools import count


_NO_THREADS = (
    "an event loop cannot wait for a thread in a durable run, whose threads would not run in the "
    "same order again; call the function directly"
)
_NO_FILES = (
    "an event loop cannot wait for files, pipes or processes in a durable run; use functions that "
    "wait themselves, such as subprocess.run"
)


def apply(inputs) -> None:
    """Makes the loops that are begun from now on durable."""
    import asyncio
    from asyncio import base_events, futures, tasks

    selectors.DefaultSelector = lambda: DurableSelector(inputs)
    _number(futures, tasks)
    loop = base_events.BaseEventLoop
    loop.run_in_executor = _refused(_NO_THREADS)
    loop.subprocess_exec = loop.subprocess_shell = _refused(_NO_FILES)
    real = loop.call_soon_threadsafe

    def call_soon_threadsafe(self, *arguments, **options):
        if not inputs.is_main_thread():
            raise RuntimeError(_NO_THREADS)
        return real(self, *arguments, **options)

    def wrap_future(future, *, loop=None):
        if futures.isfuture(future):
            return future
        raise RuntimeError(_NO_THREADS)

    loop.call_soon_threadsafe = call_soon_threadsafe
    asyncio.wrap_future = futures.wrap_future = wrap_future


def _refused(why: str):
    def refused(*_arguments, **_options):
        raise RuntimeError(why)

    return refused


class DurableSelector(selectors.PollSelector):
    """Has the loop wait for inputs, and for nothing else."""

    def __init__(self, inputs):
        super().__init__()
        self._inputs = inputs

    def register(self, fileobj, events, data=None):
        if self.get_map():
            # The first is the loop's own, by which threads and signals wake it.
            raise RuntimeError(_NO_FILES)
        return super().register(fileobj, events, data)

    def select(self, timeout=None):
        if timeout is None or timeout > 0:
            self._inputs.idle(timeout)
        return []


def _number(futures, tasks) -> None:
    numbers = count(1)

    def number(self) -> int:
        try:
            return self._belljar_number
        except AttributeError:
            self._belljar_number = found = next(numbers)
            return found

    def numbered(kind: type) -> type:
        same = {"__hash__": number, "__module__": kind.__module__, "__doc__": kind.__doc__}
        return type(kind.__name__, (kind,), same)

    futures.Future = numbered(futures.Future)
    tasks.Task = numbered(tasks.Task)
    tasks._GatheringFuture.__hash__ = number
