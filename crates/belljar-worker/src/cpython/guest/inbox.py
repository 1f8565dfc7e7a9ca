"""Reads the frames that the host sends during a run, whole and in order.

A read takes all available bytes in one system call; large bodies are read into their final place. A
body for which there is no memory is skipped and given as None, so that the frames after it are not
lost.
"""

import struct
from os import read as _os_read
from os import readv as _os_readv

_HEADER = struct.Struct("<B3xII")
_CHUNK = 64 * 1024


class Inbox:
    """The reading end of a cell's socket. One thread at a time may use it."""

    def __init__(self, fd: int, ended):
        self._fd = fd
        # Called when the host has closed its end; it does not return.
        self._ended = ended
        self._held = b""
        self._large = None

    def read(self) -> list:
        """Reads once, and waits if nothing has arrived. Returns the frames that are whole now, each
        as kind, head and body."""
        if self._large is not None:
            frame = self._large.read(self)
            if frame is None:
                return []
            self._large = None
            return [frame]
        data = self._take(_os_read, _CHUNK)
        if self._held:
            data = self._held + data
        return self._split(data)

    def finish(self) -> None:
        """Reads the rest of a frame that was begun, and drops it."""
        while self._large is not None:
            if self._large.read(self) is not None:
                self._large = None
        while self._held:
            wanted = 12
            if len(self._held) >= 12:
                _, head_len, body_len = _HEADER.unpack_from(self._held)
                wanted += head_len + body_len
            if len(self._held) >= 12 and len(self._held) == wanted:
                self._held = b""
            else:
                self._held += self._take(_os_read, wanted - len(self._held))

    def _take(self, read, amount):
        try:
            taken = read(self._fd, amount)
        except OSError:
            taken = None
        if not taken:
            self._ended()
        return taken

    def _split(self, data: bytes) -> list:
        frames, at, end = [], 0, len(data)
        while end - at >= 12:
            kind, head_len, body_len = _HEADER.unpack_from(data, at)
            body_at = at + 12 + head_len
            after = body_at + body_len
            if after > end:
                if body_len > _CHUNK and body_at <= end:
                    head = data[at + 12 : body_at]
                    self._large = _Large(kind, head, body_len, memoryview(data)[body_at:])
                    at = end
                break
            frames.append((kind, data[at + 12 : body_at], data[body_at:after]))
            at = after
        self._held = data[at:]
        return frames


class _Large:
    """A frame whose body is still on its way."""

    def __init__(self, kind: int, head: bytes, size: int, begun):
        self._kind = kind
        self._head = head
        self._left = size - len(begun)
        try:
            self._body = bytearray(size)
        except MemoryError:
            self._body = None
        if self._body is not None:
            self._body[: len(begun)] = begun

    def read(self, inbox):
        """Reads more; returns the frame once it is whole, else None."""
        if self._body is None:
            self._left -= len(inbox._take(_os_read, min(self._left, _CHUNK)))
        else:
            # Release the view at once: a bytearray with a view cannot be resized.
            with memoryview(self._body) as view, view[len(view) - self._left :] as rest:
                self._left -= inbox._take(_os_readv, (rest,))
        return None if self._left else (self._kind, self._head, self._body)
