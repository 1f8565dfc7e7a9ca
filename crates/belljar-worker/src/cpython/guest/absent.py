"""What libraries find in the place of the network and of processes with locks, which a cell has not.

An error that code catches and prints must say what the matter is: most code that uses the network
catches whatever comes of it. A pool of processes is one of threads here. Applied once, in the zygote.
"""

import errno
import functools
import importlib.machinery
import os
import re
import sys
import threading

NO_NETWORK = "there is no network in this run"
NO_SOCKETS = "a durable run has no sockets, because what they do cannot be replayed: use fetch(url)"
ONLY_PROXY = "only granted hosts can be reached, and only through the proxy in HTTPS_PROXY"
_PROXY = "http://127.0.0.1:3128"
MAX_ATTEMPTS = 10
# Functions that a pool of threads has in its own way.
_OF_THREADS = (
    "Process",
    "_wrap_exception",
    "_setup_queues",
    "_get_sentinels",
    "_get_worker_sentinels",
    "_help_stuff_finish",
)
# The hosts that the code of this run tried to reach.
attempts: list = []
_NAME = re.compile(r"(?=.{1,253}$)([a-z0-9_-]{1,63}\.)+[a-z][a-z0-9-]{0,62}")
_LOCAL = re.compile(r"\.(local|localhost|internal)$")
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
    return NO_SOCKETS if _is_fetch_only else f"{NO_NETWORK} beyond granted hosts: pass data in with `context`, or call a tool"


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


def grantable():
    """The host that was tried last, if a grant could name it and none was given to this run: no address, and
    no name of this machine or its network."""
    if os.environ.get("HTTPS_PROXY") == _PROXY or not attempts:
        return None
    host = attempts[-1].rstrip(".").lower()
    return host if _NAME.fullmatch(host) and not _LOCAL.search(host) else None


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
    sys.meta_path.insert(0, _PoolFinder())


class _PoolFinder:
    """Gives `multiprocessing.pool` pools of threads. Few programs import it, so it is changed when one does."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "multiprocessing.pool":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        real = spec.loader.exec_module

        def exec_module(module):
            real(module)
            _use_threads(module)

        spec.loader.exec_module = exec_module
        return spec


class _PoolContext:
    """A context of multiprocessing whose queues have the locks of threads."""

    Lock = staticmethod(threading.Lock)

    def __init__(self, real):
        self._real = real

    def __getattr__(self, name):
        return getattr(self._real, name)

    def SimpleQueue(self):
        from multiprocessing.queues import SimpleQueue

        return SimpleQueue(ctx=self)


def _use_threads(module) -> None:
    """Makes a pool of processes one of threads: processes of a cell have no locks in common. A pool of threads
    has a queue with such locks, too."""
    pool, threads = module.Pool, vars(module.ThreadPool)
    for name in _OF_THREADS:
        setattr(pool, name, threads[name])
    real = pool.__init__

    def start(
        self, processes=None, initializer=None, initargs=(), maxtasksperchild=None, context=None
    ):
        if maxtasksperchild is not None and maxtasksperchild <= 0:
            raise ValueError("maxtasksperchild must be a positive int or None")
        context = _PoolContext(context or module.get_context())
        # A thread that ended after so many calls would free nothing.
        real(self, processes, initializer, initargs, None, context)

    pool.__init__ = start
