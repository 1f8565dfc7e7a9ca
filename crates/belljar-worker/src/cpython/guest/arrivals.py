"""How the threads and loops of a run get the replies to their calls.

One thread at a time reads the socket for all of them: it waits for its own reply and hands out the
replies of others on the way. When it has its own, the next waiting thread reads. A loop reads when
the socket is readable, unless a thread reads already.
"""

import os
import select
from threading import Condition, get_ident


class Arrivals:
    """The reading end of a run that is not durable."""

    def __init__(self, link, may_outlive=False):
        self._link = link
        self._fd = link.fd
        self._inbox = link.inbox()
        self._turn = Condition()
        self._reader = None
        # Threads that wait while another one reads.
        self._waiting = 0
        self._attending = set()
        # Loops that leave the reading to a thread until it is done.
        self._resting = []
        # In a session, a thread that still waits when the run ends must not read on: later frames
        # belong to the next run. This pipe wakes it.
        self._main = get_ident()
        self._may_outlive = may_outlive
        self._is_closed = False
        self._bell = None

    def check(self, link) -> None:
        """Raises if no call can be made from here."""
        refuse_child(link)
        refuse_nested(self._reader)
        if self._is_closed:
            refuse_over()

    def wait(self, pending, calls) -> None:
        """Returns when the reply has arrived."""
        with self._turn:
            if self._reader is not None:
                self._wait_for_turn(pending)
            if pending.is_done or self._is_closed:
                return
            self._reader = get_ident()
            is_watched = self._may_outlive and self._reader != self._main
            if is_watched and self._bell is None:
                self._bell = os.pipe()
        try:
            while not pending.is_done:
                if is_watched and not self._hears_host():
                    return
                calls.deliver(self._inbox.read())
                # A waiting thread was counted before it looked for its reply.
                if self._waiting:
                    with self._turn:
                        self._turn.notify_all()
        finally:
            self._stop_reading()

    def _wait_for_turn(self, pending) -> None:
        refuse_nested(self._reader)
        self._waiting += 1
        try:
            while self._reader is not None and not pending.is_done and not self._is_closed:
                self._turn.wait()
        finally:
            self._waiting -= 1

    def attend(self, loop, calls) -> None:
        """Has the loop take replies when they come."""
        if loop not in self._attending and not loop.is_closed():
            self._attending.add(loop)
            loop.add_reader(self._fd, self._on_readable, loop, calls)

    def _on_readable(self, loop, calls) -> None:
        with self._turn:
            if self._reader is not None or self._is_closed:
                loop.remove_reader(self._fd)
                self._attending.discard(loop)
                self._resting.append((loop, calls))
                return
            self._reader = get_ident()
        try:
            # The bytes may be gone: code that waited in between has read them.
            if self._link.hears_within(0):
                calls.deliver(self._inbox.read())
        finally:
            self._stop_reading()

    def _stop_reading(self) -> None:
        with self._turn:
            self._reader = None
            self._turn.notify_all()
            resting, self._resting = self._resting, []
        for loop, calls in resting:
            try:
                loop.call_soon_threadsafe(self.attend, loop, calls)
            except RuntimeError:
                # The loop was closed meanwhile.
                pass


    def _hears_host(self) -> bool:
        """Waits until there is something to read, or the run is over."""
        poll = select.poll()
        for fd in (self._fd, self._bell[0]):
            poll.register(fd, select.POLLIN)
        poll.poll()
        return not self._is_closed

    def is_reading(self) -> bool:
        """Whether this thread is reading just now."""
        return self._reader == get_ident()

    def refuse_more(self) -> None:
        """From here on no thread starts to read. The caller is the only thread and does not
        read."""
        self._is_closed = True

    def close(self) -> None:
        """Ends the reading for good: returns when no thread reads. The rest of a frame is skipped
        before the next command."""
        with self._turn:
            self._is_closed = True
            if self._bell is not None:
                os.write(self._bell[1], b"!")
            self._turn.notify_all()
            while self._reader is not None:
                self._turn.wait()
            self._resting = []
        if self._bell is not None:
            for fd in self._bell:
                os.close(fd)


def refuse_over() -> None:
    """A thread, or a call, has outlived its run."""
    raise RuntimeError("the run that made this call has ended; call the tool again")


def refuse_child(link) -> None:
    """A forked child has no socket to the host."""
    if link.is_child:
        raise RuntimeError(
            "only the run's own process can call tools, not a child it forked; "
            "use threads or asyncio.gather to call several at a time"
        )


def refuse_nested(reader) -> None:
    """A signal handler or destructor cannot wait while the code that it interrupted reads."""
    if reader == get_ident():
        raise RuntimeError(
            "a tool cannot be called from a signal handler or destructor that runs while the "
            "code waits for another call"
        )
