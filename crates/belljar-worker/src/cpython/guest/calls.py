"""Tool calls on their way out, and their replies on the way back.

A call is numbered when its frame goes out, so numbers are in the order of the frames. Replies come
in any order; how a thread waits for its own is in `arrivals`, and in `durable` for runs whose
inputs are taken one by one.
"""

import json
import sys
from asyncio import _get_running_loop
from time import monotonic

from .arrivals import refuse_over
from .toolcall import ToolCall
from .toolerrors import LimitError, ToolError, of_fault, of_problem
from .value import ValueProblem, encode
from .wire import TOOL_CALL, TOOL_REPLY, frame, framed, utf8

# The host takes no more in one frame of a fetch, unless a value may be larger.
MAX_PIECE_BYTES = 256 * 1024
# The host takes no longer names.
MAX_NAME_BYTES = 1024

# Bound here, because guest code may replace the originals.
_decode = json.JSONDecoder().decode
_quote = json.encoder.encode_basestring
# For a head, which has no whitespace.
scan = json.JSONDecoder().scan_once
_frame_at = sys._getframe


class PendingCall:
    """A call whose reply is awaited."""

    __slots__ = ("number", "line", "is_done", "waiters", "_is_ok", "_is_over", "_body")

    def __init__(self, line):
        self.number = 0
        self.line = line
        self.is_done = False
        self.waiters = ()
        self._is_ok = False
        self._is_over = False
        self._body = None

    def abandon(self) -> None:
        """The run is over, and no reply will come."""
        self._is_over = True
        self.settle(False, None)

    def settle(self, is_ok: bool, body) -> None:
        """The reply has arrived: wakes the tasks that wait for it."""
        self._is_ok = is_ok
        self._body = body
        self.is_done = True
        for future in self.waiters:
            loop = future.get_loop()
            if loop is _get_running_loop():
                _arrived(future)
            else:
                try:
                    loop.call_soon_threadsafe(_arrived, future)
                except RuntimeError:
                    # The loop is closed, so nothing waits there.
                    pass

    def take(self):
        """The value of the reply. The bytes are released before they are parsed."""
        if self._is_over or not self.is_done:
            refuse_over()
        body, self._body = self._body, None
        if body is None:
            raise MemoryError
        text = str(body, "utf-8")
        body = None
        value = _decode(text)
        if self._is_ok:
            return value
        raise of_fault(value if isinstance(value, dict) else {}, self.line)

    def take_bytes(self) -> bytes:
        """The bytes of the reply."""
        if self._is_over or not self.is_done:
            refuse_over()
        body, self._body = self._body, None
        if body is None:
            raise MemoryError
        if self._is_ok:
            return bytes(body)
        fault = _decode(str(body, "utf-8"))
        raise of_fault(fault if isinstance(fault, dict) else {}, self.line)

    def has_failed(self) -> bool:
        return self.is_done and not self._is_ok


class Calls:
    """All tool calls of one run."""

    def __init__(self, link, source, limits: dict, arrivals, is_durable=False):
        self.is_durable = is_durable
        self._link = link
        self._source = source
        self._max_bytes = limits["result_bytes"]
        self._arrivals = arrivals
        self._count = 0
        self._open = {}
        # Calls whose reply the code has not asked for.
        self._unused = {}
        self._opened_at = 0.0
        self._open_seconds = 0.0

    def call(self, server, tool: str, arguments: dict):
        """Calls a tool. Returns its value, or a `ToolCall` while a loop runs in this thread."""
        pending = self._start(server, tool, arguments)
        loop = _get_running_loop()
        if loop is None:
            self._arrivals.wait(pending, self)
            return pending.take()
        self._unused[pending.number] = pending
        self._arrivals.attend(loop, self)
        return ToolCall(self, pending)

    def _start(self, server, tool: str, arguments: dict) -> PendingCall:
        self._arrivals.check(self._link)
        for name in (server, tool):
            if name is not None and len(name.encode("utf-8", "replace")) > MAX_NAME_BYTES:
                message = f"no tool has a name of more than {MAX_NAME_BYTES} bytes"
                raise ToolError(message, code="tool.unknown")
        try:
            body = encode(arguments, self._max_bytes, "args").json
        except ValueProblem as problem:
            raise of_problem(problem) from None
        pending = PendingCall(self._line())
        quoted = _quote(server) if server is not None else "null"
        named = f'"server":{quoted},"tool":{_quote(tool)}'

        def numbered() -> bytes:
            self._number(pending)
            head = f'{{"call":{pending.number},{named},"line":{pending.line or "null"}}}'
            return framed(TOOL_CALL, utf8(head), body)

        self._link.send_made(numbered)
        return pending

    def _number(self, pending: PendingCall) -> None:
        self._count = pending.number = self._count + 1
        if not self._open:
            self._opened_at = monotonic()
        self._open[pending.number] = pending

    def start_step(self, kind: int, head: dict, body: bytes) -> PendingCall:
        """Asks for a step of a fetch."""
        self._arrivals.check(self._link)
        pending = PendingCall(head.get("line"))

        def numbered() -> bytes:
            self._number(pending)
            return frame(kind, {"call": pending.number, **head}, body)

        self._link.send_made(numbered)
        return pending

    def reply_of(self, pending: PendingCall) -> bytes:
        """Waits for the reply to a step, and gives its bytes."""
        self.wait(pending)
        return pending.take_bytes()

    def check_body(self, body: bytes) -> None:
        """Raises if a body is too large to be sent whole."""
        most = max(self._max_bytes, MAX_PIECE_BYTES)
        if len(body) > most:
            raise LimitError(f"a body of a durable run has at most {most} bytes", code="limit.result")

    def _line(self):
        """The agent's line that makes the call."""
        return self.line_of(_frame_at(3))

    def line_of(self, at):
        """The agent's line in a frame, or in one around it."""
        owns = self._source.owns
        while at is not None:
            if owns(at.f_code.co_filename):
                return at.f_lineno
            at = at.f_back
        return None

    def deliver(self, frames) -> None:
        """Hands replies to their calls. Replies to unknown calls are dropped."""
        for kind, head, body in frames:
            if kind == TOOL_REPLY:
                head, _ = scan(str(head, "utf-8"), 0)
                self.settle(head["call"], head["ok"], body)

    def settle(self, number: int, is_ok: bool, body) -> None:
        """The reply of one call."""
        pending = self._open.pop(number, None)
        if pending is not None:
            if not self._open:
                self._open_seconds += monotonic() - self._opened_at
            pending.settle(is_ok, body)

    def use(self, pending: PendingCall) -> None:
        """The code asks for the reply, or has dropped the call."""
        self._unused.pop(pending.number, None)

    def wait(self, pending: PendingCall) -> None:
        """Returns when the reply has arrived."""
        self.use(pending)
        if not pending.is_done:
            self._arrivals.wait(pending, self)

    def arrival(self, pending: PendingCall, loop):
        """For a task of the loop: a future that ends when the reply has arrived."""
        self.use(pending)
        if pending.is_done:
            return
        self._arrivals.attend(loop, self)
        future = loop.create_future()
        pending.waiters = (*pending.waiters, future)
        if pending.is_done:
            _arrived(future)
        yield from future

    def finish(self) -> None:
        """Waits for calls whose reply the code has not asked for, and raises the first failure."""
        for pending in list(self._unused.values()):
            self.wait(pending)
            if pending.has_failed():
                pending.take()

    def is_reading(self) -> bool:
        """Whether this thread is reading from the host just now."""
        return self._arrivals.is_reading()

    def refuse_more(self) -> None:
        """The run of a session is about to be answered: no call is made from here on."""
        self._arrivals.refuse_more()

    def close(self) -> None:
        """The run of a session is over: no thread reads, and no call is made or answered."""
        self._arrivals.close()
        for pending in [*self._open.values()]:
            pending.abandon()
        self._open.clear()
        self._unused.clear()

    def open_seconds(self) -> float:
        """The seconds during which a call was open; the host counts that time."""
        still = monotonic() - self._opened_at if self._open else 0.0
        return self._open_seconds + still


def _arrived(future) -> None:
    if not future.done():
        future.set_result(None)
