"""Time in a durable run: every clock that Python code reads shows the run's own time.

Modules that wait for threads keep the real clock: they took its functions when they were imported,
and with a clock that stands still they would wait for ever.
"""

import datetime
import time

# These must have taken the real functions by now; see above.
_KEEP_REAL = ("queue", "selectors", "subprocess", "threading", "concurrent.futures.thread")


def apply(inputs) -> None:
    """Replaces the real clocks by the clock of the run."""
    import importlib

    for name in _KEEP_REAL:
        try:
            importlib.import_module(name)
        except ImportError:
            pass
    _patch_clocks(inputs.clock)
    _patch_calendar(inputs.clock)
    _patch_sleep(inputs)
    _patch_defaults()
    _patch_datetime(inputs.clock)


def _patch_clocks(clock) -> None:
    def wall() -> float:
        return clock.microseconds() / 1e6

    def wall_ns() -> int:
        return clock.microseconds() * 1000

    def up_ns() -> int:
        return round(clock.seconds_up() * 1e6) * 1000

    def clock_gettime(clock_id) -> float:
        return wall() if clock_id == time.CLOCK_REALTIME else clock.seconds_up()

    def clock_gettime_ns(clock_id) -> int:
        return wall_ns() if clock_id == time.CLOCK_REALTIME else up_ns()

    _put("time", wall)
    _put("time_ns", wall_ns)
    for name in ("monotonic", "perf_counter", "process_time", "thread_time"):
        _put(name, clock.seconds_up)
        _put(f"{name}_ns", up_ns)
    _put("clock_gettime", clock_gettime)
    _put("clock_gettime_ns", clock_gettime_ns)


def _patch_calendar(clock) -> None:
    real_local, real_gm = time.localtime, time.gmtime
    real_format, real_text = time.strftime, time.asctime

    def now() -> float:
        return clock.microseconds() / 1e6

    def localtime(seconds=None, /):
        return real_local(now() if seconds is None else seconds)

    def gmtime(seconds=None, /):
        return real_gm(now() if seconds is None else seconds)

    def strftime(form, moment=None, /):
        return real_format(form, localtime() if moment is None else moment)

    def asctime(moment=None, /):
        return real_text(localtime() if moment is None else moment)

    def ctime(seconds=None, /):
        return real_text(localtime(seconds))

    for function in (localtime, gmtime, strftime, asctime, ctime):
        _put(function.__name__, function)


def _patch_sleep(inputs) -> None:
    real = time.sleep

    def sleep(seconds, /):
        # A thread has no part in the order of inputs. Python itself refuses an argument that is not
        # a time.
        if not inputs.is_main_thread() or not isinstance(seconds, (int, float)) or seconds <= 0:
            return real(seconds)
        return inputs.sleep(seconds)

    _put("sleep", sleep)


def _put(name: str, function) -> None:
    real = getattr(time, name, None)
    if real is None:
        return
    if getattr(function, "__self__", None) is None:
        function.__name__ = function.__qualname__ = name
        function.__doc__ = real.__doc__
    setattr(time, name, function)


def _patch_defaults() -> None:
    """Replaces references to the real clock that other modules hold."""
    import sys

    sched = sys.modules.get("sched")
    if sched is not None:
        sched.scheduler.__init__.__defaults__ = (time.monotonic, time.sleep)
    logging = sys.modules.get("logging")
    if logging is not None:
        is_whole = isinstance(logging._startTime, int)
        logging._startTime = time.time_ns() if is_whole else time.time()
    timeit = sys.modules.get("timeit")
    if timeit is not None:
        timeit.default_timer = time.perf_counter


def _patch_datetime(clock) -> None:
    utc = datetime.timezone.utc

    def now(cls, tz=None):
        """The current time, in this zone or the local one."""
        return cls.fromtimestamp(clock.microseconds() / 1e6, tz)

    def utcnow(cls):
        """The current time in UTC, without a zone."""
        return cls.fromtimestamp(clock.microseconds() / 1e6, utc).replace(tzinfo=None)

    def today(cls):
        """The current date."""
        return cls.fromtimestamp(clock.microseconds() / 1e6)

    _put_method(datetime.datetime, now)
    _put_method(datetime.datetime, utcnow)
    _put_method(datetime.date, today)


def _put_method(kind: type, function) -> None:
    """Replaces a class method written in C, in the class itself: a subclass would be another class
    to `isinstance`, pickle and pandas."""
    import ctypes
    import gc

    (members,) = (one for one in gc.get_referents(kind.__dict__) if type(one) is dict)
    members[function.__name__] = classmethod(function)
    # Python caches method lookups until the type is marked as modified.
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))
