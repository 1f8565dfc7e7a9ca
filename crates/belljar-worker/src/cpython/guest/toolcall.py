"""An open call: the value of a tool call while an event loop runs.

It can be awaited, any number of times, and gathered, made a task, cancelled. In any other use it
waits for its reply and behaves as the value, so code that forgot an `await` still works.
"""

import operator
from asyncio import get_running_loop
from threading import RLock

_WAITING = object()


class ToolCall:
    """The reply of a tool, now or soon."""

    __slots__ = (
        "_belljar_pending",
        "_belljar_calls",
        "_belljar_steps",
        "_belljar_kept",
        "__weakref__",
    )

    def __init__(self, calls, pending):
        self._belljar_calls = calls
        self._belljar_pending = pending
        self._belljar_steps = None
        self._belljar_kept = _ReplyValue(pending)

    def __await__(self):
        yield from self._belljar_calls.arrival(self._belljar_pending, get_running_loop())
        return self._belljar_kept.value()

    # asyncio takes an object with these three methods for a coroutine and makes a task of it.

    def send(self, value):
        if self._belljar_steps is None:
            self._belljar_steps = self.__await__()
        try:
            return self._belljar_steps.send(value)
        except BaseException:
            self._belljar_steps = None
            raise

    def throw(self, *error):
        if self._belljar_steps is None:
            # Cancelled before it began.
            self._belljar_calls.use(self._belljar_pending)
            self._belljar_steps = self.__await__()
        try:
            return self._belljar_steps.throw(*error)
        except BaseException:
            self._belljar_steps = None
            raise

    def close(self) -> None:
        steps, self._belljar_steps = self._belljar_steps, None
        if steps is not None:
            steps.close()

    def __getattr__(self, name):
        # Attributes that libraries read to identify an object must not wait; no JSON value has such
        # names.
        if name.startswith(("_", "cr_", "gi_", "ag_")):
            raise AttributeError(f"'ToolCall' object has no attribute {name!r}")
        return getattr(value_of(self), name)

    def __setitem__(self, key, value):
        value_of(self)[key] = value

    def __delitem__(self, key):
        del value_of(self)[key]

    def __dir__(self):
        return dir(value_of(self))

    def __copy__(self):
        import copy

        return copy.copy(value_of(self))

    def __deepcopy__(self, memo):
        import copy

        return copy.deepcopy(value_of(self), memo)

    def __reduce__(self):
        return (_same, (value_of(self),))

    __hash__ = object.__hash__


class _ReplyValue:
    """The value of a reply, parsed once, or its error."""

    __slots__ = ("_pending", "_lock", "_value", "_error")

    def __init__(self, pending):
        self._pending = pending
        self._lock = RLock()
        self._value = _WAITING
        self._error = None

    def value(self):
        with self._lock:
            if self._error is not None:
                raise self._error.with_traceback(None)
            if self._value is _WAITING:
                try:
                    self._value = self._pending.take()
                except Exception as error:
                    self._error = error
                    raise
            return self._value


def value_of(call: ToolCall):
    """Waits for the tool and returns its value, or raises its error."""
    call._belljar_calls.wait(call._belljar_pending)
    return call._belljar_kept.value()


def settle(value):
    """Waits for a call that is a statement of its own; it can still be awaited afterwards."""
    if type(value) is ToolCall:
        value_of(value)
    return value


def _same(value):
    return value


def _plain(value):
    return value_of(value) if type(value) is ToolCall else value


def _one(function):
    return lambda self: function(value_of(self))


def _two(function):
    return lambda self, other: function(value_of(self), _plain(other))


def _swapped(function):
    return lambda self, other: function(_plain(other), value_of(self))


for _name, _function in {
    "len": len, "iter": iter, "bool": bool, "str": str, "repr": repr, "int": int, "float": float,
    "reversed": reversed, "round": round, "complex": complex, "index": operator.index,
    "neg": operator.neg, "pos": operator.pos, "abs": abs, "invert": operator.invert,
}.items():  # fmt: skip
    setattr(ToolCall, f"__{_name}__", _one(_function))
for _name in ("eq", "ne", "lt", "le", "gt", "ge", "getitem", "contains"):
    setattr(ToolCall, f"__{_name}__", _two(getattr(operator, f"__{_name}__")))
setattr(ToolCall, "__format__", _two(format))
for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor"):
    setattr(ToolCall, f"__{_name}__", _two(getattr(operator, f"__{_name}__")))
    setattr(ToolCall, f"__r{_name}__", _swapped(getattr(operator, f"__{_name}__")))
# `==` compares values, and values of replies have no hash: the call is its own.
ToolCall.__module__ = "builtins"
