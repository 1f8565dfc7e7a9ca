"""What libraries find in the place of the network and of processes with locks, which a cell has not.

An error that code catches and prints must say what the matter is: most code that uses the network
catches whatever comes of it. A pool of processes is one of threads here. Applied once, in the zygote.
"""

import errno
import functools
import os

NO_NETWORK = "there is no network in this run"
NO_SOCKETS = "a durable run has no sockets, because what they do cannot be replayed: use fetch(url)"
ONLY_PROXY = "only granted hosts can be reached, and only through the proxy in HTTPS_PROXY"
_PROXY = "http://127.0.0.1:3128"
MAX_ATTEMPTS = 10
# The hosts that the code of this run tried to reach.
attempts: list = []
_is_fetch_only = False
_REFUSALS = (errno.EPERM, errno.EACCES, errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EAFNOSUPPORT)


def apply() -> None:
    """Applies all of them."""
    _patch_socket()
    _patch_pools()


def begin(network: str) -> None:
    """A run begins. `network` is how its code reaches hosts."""
    global _is_fetch_only
    attempts.clear()
    _is_fetch_only = network == "fetch"


def missing() -> str:
    """What code that wants a socket is told."""
    return NO_SOCKETS if _is_fetch_only else f"{NO_NETWORK}: pass data in with `context`, or call a tool"


def hint(usual: str) -> str:
    """The hint for code that was refused a socket."""
    return "Use fetch(url): the journal of a durable run has what it does." if _is_fetch_only else usual


def _patch_socket() -> None:
    import socket

    def told(real):
        @functools.wraps(real)
        def call(*arguments, **options):
            try:
                return real(*arguments, **options)
            except OSError as error:
                if _explain(error):
                    _note(real, arguments)
                raise

        return call

    socket.getaddrinfo = told(socket.getaddrinfo)
    socket.gethostbyname = told(socket.gethostbyname)
    socket.socket.__init__ = told(socket.socket.__init__)

    def connect(self, address):
        return told(super(socket.socket, self).connect)(address)

    socket.socket.connect = connect


def _note(real, arguments) -> None:
    """Remembers who was to be reached: code that catches the error leaves no other trace of it."""
    # A socket knows no address yet, and its first argument is itself.
    named = arguments[:1] if real.__name__ != "__init__" else ()
    for place in named:
        host = str(place[0] if isinstance(place, tuple) and place else place)
        if host not in attempts and len(attempts) < MAX_ATTEMPTS:
            attempts.append(host)


def _explain(error: OSError) -> bool:
    """Adds the reason to an error of the system, which has a number and a text; whether it is of the network."""
    if type(error).__name__ != "gaierror" and error.errno not in _REFUSALS:
        return False
    if len(error.args) == 2 and isinstance(error.args[1], str):
        if any(known in error.args[1] for known in (NO_NETWORK, NO_SOCKETS, ONLY_PROXY)):
            return True
        reason = missing()
        if os.environ.get("HTTPS_PROXY") == _PROXY:
            reason = ONLY_PROXY
        text = f"{error.args[1]} ({reason})"
        error.args = (error.args[0], text)
        error.strerror = text
    return True


def _patch_pools() -> None:
    import concurrent.futures
    from concurrent.futures.thread import ThreadPoolExecutor

    class ProcessPoolExecutor(ThreadPoolExecutor):
        """Runs calls in threads: processes of a cell have no locks in common."""

        def __init__(
            self, max_workers=None, mp_context=None, initializer=None, initargs=(), **_options
        ):
            super().__init__(max_workers, "", initializer, initargs)

    ProcessPoolExecutor.__module__ = "concurrent.futures.process"
    ProcessPoolExecutor.__qualname__ = "ProcessPoolExecutor"
    concurrent.futures.ProcessPoolExecutor = ProcessPoolExecutor
