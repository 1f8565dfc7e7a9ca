"""What is written to file descriptors 1 and 2, by child processes and by native code.

Set up before the first child is made, or at once where processes were granted: two pipes in place
of the descriptors, and a thread that turns what arrives into frames.
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

    def start(self) -> None:
        """Puts the pipes in place; a second call does nothing."""
        if self._thread is not None:
            return
        self._thread = threading.Thread(target=self._forward, daemon=True, name="belljar-output")
        self._readers = {}
        for fd, stream in ((1, "stdout"), (2, "stderr")):
            reader, writer = os.pipe()
            os.dup2(writer, fd)
            os.close(writer)
            self._readers[reader] = stream
        wait, self._wake = os.pipe()
        self._wait = wait
        self._thread.start()

    def stop(self) -> None:
        """Forwards what has arrived, and ends."""
        if self._thread is None:
            return
        os.close(self._wake)
        self._thread.join(_LAST_WORDS_SECONDS)

    def _forward(self) -> None:
        poll = select.poll()
        for fd in (*self._readers, self._wait):
            poll.register(fd, select.POLLIN | select.POLLHUP)
        is_ending = False
        while True:
            ready = poll.poll(0 if is_ending else None)
            heard = False
            for fd, _ in ready:
                if fd == self._wait:
                    is_ending = True
                    poll.unregister(fd)
                    continue
                heard = True
                data = os.read(fd, _CHUNK)
                if data:
                    self._link.print(self._readers[fd], data)
                else:
                    poll.unregister(fd)
            if is_ending and not heard:
                return
