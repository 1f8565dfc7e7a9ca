"""Durable runs: with the same inputs in the same order, the code does the same again.

Inputs are the replies to tool calls and the timers the code asked for. They are taken one at a
time, by the main thread, and only when there is nothing else to do. Between two of them the clock
stands still. `virtual_time`, `virtual_chance` and `virtual_loop` hold the rest of Python to this.
The host detects other differences, because it compares the requests of a replay with the journal.
"""

import math
from threading import get_ident

from . import virtual_chance, virtual_loop, virtual_time
from .arrivals import refuse_child, refuse_nested
from .calls import scan
from .wire import TIMER, TIMER_WANTED, TOOL_REPLY, frame

# A time closer than this to a whole millisecond is rounded to it: sums of seconds are not exact.
_NOISE_MS = 1e-7


class Clock:
    """The clock of a durable run: the time of the last input."""

    __slots__ = ("start_ms", "now_ms")

    # The start of clocks that count from boot, as on a machine that has been up for a while.
    UP_SECONDS = 1000.0

    def __init__(self, now_ms: float):
        self.start_ms = self.now_ms = float(now_ms)

    def set(self, now_ms) -> None:
        """Sets the time; it never goes back."""
        if now_ms is not None and now_ms > self.now_ms:
            self.now_ms = float(now_ms)

    def microseconds(self) -> int:
        """The time of the clock, since 1970."""
        return int(self.now_ms * 1000)

    def seconds_up(self) -> float:
        """The time of a clock that counts from boot."""
        return (self.now_ms - self.start_ms) / 1000 + self.UP_SECONDS

    def after(self, seconds: float) -> float:
        """The time so many seconds from now, in whole milliseconds since the start. It is the same
        each time it is computed on the way there."""
        elapsed = self.now_ms - self.start_ms + seconds * 1000
        return self.start_ms + math.ceil(elapsed - _NOISE_MS)


class Inputs:
    """The reading end of a durable run; takes the place of `Arrivals`."""

    def __init__(self, link, clock: Clock):
        self.clock = clock
        self._link = link
        self._inbox = link.inbox()
        self._frames = []
        self._calls = None
        self._main = get_ident()
        self._is_reading = False
        self._asked_ms = None

    def deliver_to(self, calls) -> None:
        """Sets the calls to which replies belong."""
        self._calls = calls

    def check(self, link) -> None:
        """Raises if no call can be made from here."""
        refuse_child(link)
        self.refuse_thread("a tool cannot be called")
        refuse_nested(self._main if self._is_reading else None)

    def is_main_thread(self) -> bool:
        return get_ident() == self._main

    def refuse_thread(self, what: str) -> None:
        """Raises in any thread but the first: the order of threads is not the same twice."""
        if not self.is_main_thread():
            raise RuntimeError(
                f"{what} from a thread in a durable run, whose threads would not run in the same "
                "order again; call from the main thread, with asyncio.gather for several at a time"
            )

    def wait(self, pending, _calls) -> None:
        """Returns when the reply has arrived; inputs that come before it take effect before it."""
        self.refuse_thread("the reply of a tool cannot be waited for")
        while not pending.is_done:
            self.take_one()

    def attend(self, _loop, _calls) -> None:
        """The selector of the loop takes inputs."""

    def sleep(self, seconds: float) -> None:
        """Returns when the clock shows so many seconds more."""
        until = self.clock.after(seconds)
        while self.clock.now_ms < until:
            self.ask_for(until)
            self.take_one()

    def idle(self, seconds) -> None:
        """The loop has nothing to do for so many seconds: takes one input."""
        self.refuse_thread("a loop cannot wait")
        if seconds is not None:
            self.ask_for(self.clock.after(seconds))
        self.take_one()

    def ask_for(self, at_ms: float) -> None:
        """Asks the host, once, for a timer at this time."""
        if at_ms != self._asked_ms:
            self._asked_ms = at_ms
            self._link.send(frame(TIMER_WANTED, {"at_ms": at_ms}))

    def take_one(self) -> None:
        """Takes exactly one input and applies it."""
        refuse_nested(self._main if self._is_reading else None)
        self._is_reading = True
        try:
            while not self._frames:
                self._frames = self._inbox.read()
            kind, head, body = self._frames.pop(0)
        finally:
            self._is_reading = False
        head, _ = scan(str(head, "utf-8"), 0)
        self.clock.set(head.get("now_ms"))
        if kind == TOOL_REPLY:
            self._calls.settle(head["call"], head["ok"], body)
        elif kind == TIMER:
            self._asked_ms = None


def begin(durable: dict, link) -> Inputs:
    """From here on the time and randomness of this process come from the host."""
    inputs = Inputs(link, Clock(durable["now_ms"]))
    virtual_time.apply(inputs)
    virtual_chance.apply(bytes.fromhex(durable["seed"]))
    virtual_loop.apply(inputs)
    return inputs
