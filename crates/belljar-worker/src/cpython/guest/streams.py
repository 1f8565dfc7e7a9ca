"""`sys.stdout`, `sys.stderr` and `sys.stdin` of guest code.

Output becomes frames at once, so that nothing is lost when the cell is killed. Text waits only
until its line ends: one print is one frame, however many parts it has. The streams look like those
of any other Python.
"""

import io
import threading

# A longer line is sent before it ends.
MAX_HELD_CHARS = 256 * 1024


class GuestStream(io.TextIOBase):
    """Standard output or error."""

    encoding = "utf-8"
    errors = "backslashreplace"
    newlines = None
    line_buffering = True
    write_through = False
    mode = "w"

    def __init__(self, link, name: str, fd: int):
        self._link = link
        self._stream = name
        self._fd = fd
        # Reentrant: a signal handler or a destructor of guest code may print in the middle.
        self._lock = threading.RLock()
        self._held = []
        self._held_chars = 0
        self.name = f"<{name}>"
        self.buffer = GuestBuffer(self)

    def write(self, text) -> int:
        if not isinstance(text, str):
            kind = type(text).__name__
            raise TypeError(f"write() argument must be str, not {kind}")
        with self._lock:
            if text[-1:] == "\n":
                if self._held:
                    self._held.append(text)
                    text = self._take()
                self._link.print(self._stream, self._encode(text))
                return len(text)
            if text:
                self._held.append(text)
                self._held_chars += len(text)
                if self._held_chars > MAX_HELD_CHARS:
                    self.flush()
        return len(text)

    def writelines(self, lines) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        with self._lock:
            if self._held:
                self._link.print(self._stream, self._encode(self._take()))

    def holds_any(self) -> bool:
        """Whether text waits here or in the buffer below."""
        return bool(self._held or self.buffer._held)

    def write_bytes(self, data: bytes) -> None:
        """Sends bytes unchanged, after all earlier text."""
        with self._lock:
            self.flush()
            if data:
                self._link.print(self._stream, data)

    def reconfigure(self, **_options) -> None:
        """Nothing to configure: it is UTF-8, by lines."""

    def fileno(self) -> int:
        return self._fd

    def isatty(self) -> bool:
        return False

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        """Closing would lose what is printed later; it only flushes."""
        self.flush()

    def _take(self) -> str:
        text = "".join(self._held)
        self._held.clear()
        self._held_chars = 0
        return text

    def _encode(self, text: str) -> bytes:
        return text.encode("utf-8", "backslashreplace")

    def __repr__(self) -> str:
        return f"<_io.TextIOWrapper name='{self.name}' mode='w' encoding='utf-8'>"


class GuestBuffer(io.BufferedIOBase):
    """The bytes below a stream."""

    def __init__(self, stream: GuestStream):
        self._stream = stream
        self._held = bytearray()
        self.name = stream.name
        self.raw = self

    def write(self, data) -> int:
        data = bytes(data)
        self._held += data
        if data.endswith(b"\n") or len(self._held) > MAX_HELD_CHARS:
            self.flush()
        return len(data)

    def flush(self) -> None:
        held, self._held = bytes(self._held), bytearray()
        if held:
            self._stream.write_bytes(held)

    def fileno(self) -> int:
        return self._stream.fileno()

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        self.flush()


class Streams:
    """The three streams of one run."""

    def __init__(self, link):
        self.out = GuestStream(link, "stdout", 1)
        self.err = GuestStream(link, "stderr", 2)
        self.inp = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")

    def install(self, sys) -> None:
        sys.stdout = sys.__stdout__ = self.out
        sys.stderr = sys.__stderr__ = self.err
        sys.stdin = sys.__stdin__ = self.inp

    def flush(self) -> None:
        for stream in (self.out, self.err):
            if stream.holds_any():
                stream.buffer.flush()
                stream.flush()
