"""Captures the output of child processes and native code on file descriptors 1 and 2.

Two pipes replace the descriptors before the first child is made, or at once where processes were
granted. A thread turns the bytes into frames.
"""

import os
import select
import threading

_CHUNK = 64 * 1024
_LAST_WORDS_SECONDS = 0.5


class FdCapture:
    """The two descriptors of one run."""

    def __init__(self, link):
        self._link = link
        self._thread = None
        self._wake = None
        self._kept = ()

    def start(self) -> None:
        """Puts the pipes in place; a second call does nothing."""
        if self._thread is not None:
            return
        self._kept = [_copy(fd) for fd in (1, 2)]
        readers = {}
        for fd, stream in ((1, "stdout"), (2, "stderr")):
            reader, writer = os.pipe()
            os.dup2(writer, fd)
            os.close(writer)
            readers[reader] = stream
        wait, self._wake = os.pipe()
        self._thread = threading.Thread(
            target=self._forward, args=(readers, wait), daemon=True, name="belljar-output"
        )
        self._thread.start()

    def stop(self) -> None:
        """Forwards the bytes that have arrived, and ends; restores the descriptors."""
        if self._thread is None:
            return
        for fd, kept in zip((1, 2), self._kept):
            if kept is None:
                os.close(fd)
            else:
                os.dup2(kept, fd)
                os.close(kept)
        os.close(self._wake)
        self._thread.join(_LAST_WORDS_SECONDS)
        self._thread = None

    def _forward(self, readers, wait) -> None:
        try:
            self._read_all(readers, wait)
        finally:
            # Output of a child that still runs is lost from here on.
            for fd in (*readers, wait):
                os.close(fd)

    def _read_all(self, readers, wait) -> None:
        poll = select.poll()
        for fd in (*readers, wait):
            poll.register(fd, select.POLLIN | select.POLLHUP)
        is_ending = False
        while True:
            ready = poll.poll(0 if is_ending else None)
            heard = False
            for fd, _ in ready:
                if fd == wait:
                    is_ending = True
                    poll.unregister(fd)
                    continue
                heard = True
                data = os.read(fd, _CHUNK)
                if data:
                    self._link.print(readers[fd], data)
                else:
                    poll.unregister(fd)
            if is_ending and not heard:
                return


def _copy(fd: int):
    """Another descriptor of the same file, None if there is no file."""
    try:
        return os.dup(fd)
    except OSError:
        return None
