"""Frames to and from the host, over the one socket of the cell.

A frame is a header of twelve bytes (kind, three zeros, two little-endian lengths), a JSON head and
a raw body; `belljar-wire` implements the other end. Any thread may send; frames never interleave.
After the last frame of a run nothing is sent until a session begins the next run.
"""

import json
import os
import select
import struct
import threading
from os import read as _os_read
from os import write as _os_write

from .inbox import Inbox

RUN = 1
TOOL_REPLY = 2
TIMER = 3
BRANCH = 4
REROOT = 5
READY = 65
PRINT = 67
DENIED = 68
DONE = 69
FAILED = 70
ARTIFACT = 71
TOOL_CALL = 72
TIMER_WANTED = 73
BRANCHED = 74
REROOTED = 75
NOT_BRANCHED = 76
STATE = 77
FETCH = 78
FETCH_SEND = 79
FETCH_READ = 80

MAX_HEAD_BYTES = 64 * 1024
MAX_TEXT_BYTES = 64 * 1024
# A body up to this size is read together with its head.
SMALL_BODY_BYTES = 64 * 1024
MAX_ATTEMPT_CHARS = 300

_HEADER = struct.Struct("<B3xII")
# Bound here, because guest code may replace the originals.
_dumps = json.JSONEncoder(ensure_ascii=False).encode
# For a head, which has no whitespace.
_scan = json.JSONDecoder().scan_once
_PRINT_HEADS = {
    name: _dumps({"stream": name}).encode() for name in ("stdout", "stderr", "log")
}
_DONE_HEADS = {
    (lossy, cut): _dumps({"lossy": lossy, "cut": cut}).encode()
    for lossy in (False, True)
    for cut in (False, True)
}


class HostGone(Exception):
    """The host closed its end."""


def utf8(text: str) -> bytes:
    """Any text as UTF-8: halves of surrogate pairs are joined, or become U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return whole.encode()


def frame(kind: int, head: dict, body: bytes = b"") -> bytes:
    """One frame as bytes."""
    return framed(kind, utf8(_dumps(head)), body)


def framed(kind: int, head: bytes, body: bytes) -> bytes:
    """One frame, of a head that is JSON already."""
    return b"".join((_HEADER.pack(kind, len(head), len(body)), head, body))


READY_FRAME = frame(READY, {})
# In the order in which they are sent when a guest branches; the host sends the third.
BRANCH_FRAMES = (frame(BRANCHED, {}), READY_FRAME, frame(REROOT, {}), frame(REROOTED, {}))


class Link:
    """The socket. `fd` is None for a rehearsal, whose frames go nowhere."""

    def __init__(self, fd):
        self.fd = fd
        # Reentrant only because such a lock knows its owner from the moment it is taken.
        self._lock = threading.RLock()
        self._later = []
        self._is_over = False
        self._overdue = None
        self.is_child = False
        # Threads that have outlived their run: their output is dropped.
        self.muted = None
        self._inbox = None

    def lead_to(self, fd) -> None:
        """Sets the socket for all later frames."""
        self.fd = fd
        self._inbox = None

    def send(self, data: bytes, last: bool = False) -> None:
        """Writes whole frames. With `last`, all later frames are dropped."""
        self.send_made(lambda: data, last)

    def send_made(self, make, last: bool = False) -> None:
        """Calls `make` when it is this frame's turn and writes the frame: numbers that `make`
        assigns follow the order of the frames."""
        if self.muted and threading.current_thread() in self.muted:
            return
        if self._lock._is_owned():
            # A destructor or a signal handler of guest code prints in the middle of a frame.
            self._later.append((make(), last))
            return
        with self._lock:
            self._put(make(), last)
            while self._later:
                self._put(*self._later.pop(0))
        if self._overdue is not None:
            self._overdue()

    def interrupt(self, report) -> None:
        """For a signal handler: runs `report`, which sends, as soon as no frame is half written."""
        if self._lock._is_owned():
            # The interrupted code is in the middle of a frame: it continues, and `send` calls the
            # report after the frame.
            self._overdue = report
        else:
            report()

    def _put(self, data: bytes, last: bool) -> None:
        if not self._is_over:
            self._is_over = last
            self._write(data)

    def _write(self, data: bytes) -> None:
        if self.fd is None:
            return
        try:
            written = _os_write(self.fd, data)
            if written < len(data):
                rest = memoryview(data)
                while written < len(data):
                    written += _os_write(self.fd, rest[written:])
        except OSError:
            # The host is gone, so nothing can be reported.
            self._is_over = True

    def ready(self) -> None:
        self._answer(READY_FRAME)

    def rerooted(self) -> None:
        self._answer(frame(REROOTED, {}))

    def not_branched(self, message: str) -> None:
        self._answer(frame(NOT_BRANCHED, {"message": message}))

    def _answer(self, data: bytes) -> None:
        """Sends a frame that belongs to no run."""
        with self._lock:
            self._write(data)

    def print(self, stream: str, text: bytes) -> None:
        """Sends a printed text, in pieces if it is long."""
        if self.is_child:
            self._print_as_child(stream, text)
            return
        head = _PRINT_HEADS[stream]
        if len(text) <= MAX_TEXT_BYTES:
            self.send(_HEADER.pack(PRINT, len(head), len(text)) + head + text)
            return
        start = 0
        while start < len(text):
            end = _boundary(text, start + MAX_TEXT_BYTES)
            piece = text[start:end]
            self.send(_HEADER.pack(PRINT, len(head), len(piece)) + head + piece)
            start = end

    def _print_as_child(self, stream: str, text: bytes) -> None:
        # The cell's own process captures these descriptors, if a capture is running.
        try:
            _os_write(1 if stream == "stdout" else 2, text)
        except OSError:
            pass

    def denied(self, attempt: str) -> None:
        self.send(frame(DENIED, {"attempt": attempt[:MAX_ATTEMPT_CHARS]}))

    def artifact(self, path: str) -> None:
        self.send(frame(ARTIFACT, {"path": path}))

    def state(self, value: bytes, cut: bool) -> None:
        self.send(frame(STATE, {"cut": cut}, value))

    def done(self, value: bytes, lossy: bool, cut: bool) -> None:
        self.send(framed(DONE, _DONE_HEADS[lossy, cut], value), last=True)

    def failed(self, error: dict) -> None:
        self.send(failed_frame(error), last=True)

    def forget(self) -> None:
        """In a forked child: it must not send frames."""
        self._lock = threading.RLock()
        self._later = []
        self._is_over = self.is_child = True
        if self.fd is not None:
            try:
                os.close(self.fd)
            except OSError:
                pass
            self.fd = None

    def hears_within(self, seconds: float) -> bool:
        """Whether bytes arrive in this time."""
        poll = select.poll()
        poll.register(self.fd, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    def inbox(self) -> Inbox:
        """The reader of frames during a run."""
        if self._inbox is None:
            self._inbox = Inbox(self.fd, self.block_for_ever)
        return self._inbox

    def receive_command(self):
        """Waits for the next command: its kind, its head, its body. Reads no byte beyond it. Skips
        replies that come too late for their run."""
        if self._inbox is not None:
            self._inbox.finish()
        while True:
            kind, head_len, body_len = _HEADER.unpack(self._read(_HEADER.size))
            if body_len > SMALL_BODY_BYTES:
                head, body = self._read(head_len), self._read(body_len)
            else:
                both = self._read(head_len + body_len)
                head, body = both[:head_len], both[head_len:]
            if kind not in (TOOL_REPLY, TIMER):
                return kind, head, body

    def reopen(self) -> None:
        """Another run begins: frames are sent again."""
        with self._lock:
            self._later = []
            self._is_over = False
            self._overdue = None

    def wait_for_end(self) -> None:
        """Returns when the host closes its end; usually it kills the cell before that."""
        try:
            while self.fd is not None and _os_read(self.fd, 4096):
                pass
        except OSError:
            pass

    def block_for_ever(self) -> None:
        """The run is over: waits to be killed."""
        self.wait_for_end()
        os._exit(0)

    def _read(self, size: int) -> bytes:
        parts = [b""]
        while size > 0:
            part = _os_read(self.fd, min(size, 1 << 20))
            if not part:
                raise HostGone
            parts.append(part)
            size -= len(part)
        return parts[1] if len(parts) == 2 else b"".join(parts)


def run_of(head: bytes, body: bytes):
    """The parts of a run's frame: head, code, context."""
    head, _ = _scan(head.decode(), 0)
    code = body[: head["code_bytes"]]
    return head, code.decode(), body[head["code_bytes"] :]


def failed_frame(error: dict) -> bytes:
    """The frame of an error, cut until its head is small enough for the host."""
    data = frame(FAILED, error)
    for name in ("stack", "hint", "message"):
        if len(data) <= MAX_HEAD_BYTES:
            break
        # Text of control characters takes six bytes for each of them.
        error = dict(error)
        error[name] = (error.get(name) or "")[:2000]
        data = frame(FAILED, error)
    return data


def _boundary(text: bytes, end: int) -> int:
    """The nearest place at or before `end` that does not split a character of UTF-8."""
    if end >= len(text):
        return len(text)
    for back in range(4):
        if text[end - back] & 0xC0 != 0x80:
            return end - back
    return end


