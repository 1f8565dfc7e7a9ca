"""The JSON of each kind of Python object, one step at a time.

`convert` gives a value nearer to JSON: a scalar, a dict or a list, whose items may need another
step. numpy and pandas are in `tables`, which is asked only if they were imported.
"""

import array
import asyncio
import base64
import collections
import collections.abc
import dataclasses
import datetime
import decimal
import enum
import fractions
import io
import ipaddress
import pathlib
import types
import uuid

from . import tables
from .toolnames import Server, Servers, Tool, Tools


class Unsupported(Exception):
    """JSON cannot represent the value; `what` names its kind, with an article."""

    def __init__(self, what: str):
        super().__init__(what)
        self.what = what


_VIEWS = (
    type({}.keys()),
    type({}.values()),
    type({}.items()),
    type(collections.OrderedDict().keys()),
    type(collections.OrderedDict().values()),
    type(collections.OrderedDict().items()),
)
_AS_TEXT = (
    decimal.Decimal,
    fractions.Fraction,
    uuid.UUID,
    pathlib.PurePath,
    ipaddress._BaseAddress,
    ipaddress._BaseNetwork,
)
_FUNCTIONS = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.MethodWrapperType,
    types.MethodDescriptorType,
)

_TOOLS = (Tool, Tools, Server, Servers)


def convert(value, walker):
    """One step towards JSON; raises `Unsupported`."""
    if isinstance(value, enum.Enum):
        return value.value
    found, result = tables.convert(value, walker)
    if found:
        return result
    found, result = _scalar(value)
    if found:
        return result
    if isinstance(value, type):
        raise Unsupported("a class")
    found, result = _container(value, walker)
    if found:
        return result
    raise Unsupported(describe(value))


def _scalar(value):
    # The exact base types, whatever a subclass overrides.
    if isinstance(value, str):
        return True, str.__str__(value)
    if isinstance(value, int):
        return True, int.__int__(value)
    if isinstance(value, float):
        return True, float.__float__(value)
    if isinstance(value, datetime.timedelta):
        return True, value.total_seconds()
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return True, value.isoformat()
    if isinstance(value, _AS_TEXT):
        return True, str(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return True, base64.b64encode(bytes(value)).decode()
    return False, None


def _container(value, walker):
    if isinstance(value, dict):
        return True, dict(value.items())
    if isinstance(value, (list, tuple)):
        return True, list(value)
    if isinstance(value, (set, frozenset)):
        return True, _ordered(value)
    if isinstance(value, (range, array.array, collections.deque, *_VIEWS)):
        walker.refuse_over(len(value))
        return True, list(value)
    if dataclasses.is_dataclass(value):
        return True, {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, types.SimpleNamespace):
        return True, dict(vars(value))
    if isinstance(value, (collections.abc.Mapping, types.MappingProxyType)):
        return True, dict(value)
    if isinstance(value, collections.UserList):
        return True, list(value.data)
    dump = getattr(type(value), "model_dump", None)
    if callable(dump) and hasattr(type(value), "model_fields"):
        return True, dict(dump(value))
    attributes = getattr(type(value), "__attrs_attrs__", None)
    if attributes is not None:
        return True, {field.name: getattr(value, field.name) for field in attributes}
    return False, None


def _ordered(items):
    """Items of a set in an order that is the same in every run, where they have one."""
    kinds = set(map(type, items))
    if kinds <= {str} or kinds <= {int, float, bool}:
        return sorted(items)
    return list(items)


def key_text(key):
    """The key of a dict as the key of an object, None when it has no text."""
    if isinstance(key, enum.Enum):
        key = key.value
    if isinstance(key, str):
        return str.__str__(key)
    if key is None:
        return "null"
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, int):
        return int.__repr__(key)
    if isinstance(key, float):
        return float.__repr__(key)
    if isinstance(key, (datetime.datetime, datetime.date, datetime.time)):
        return key.isoformat()
    if isinstance(key, _AS_TEXT):
        return str(key)
    return tables.key_text(key)


def describe(value) -> str:
    """The kind of an object in words, without running its code."""
    kind = type(value)
    if isinstance(value, type):
        return "a class"
    if isinstance(value, types.ModuleType):
        return "a module"
    if isinstance(value, _FUNCTIONS):
        return "a function"
    if isinstance(value, _TOOLS):
        return "a tool"
    if isinstance(value, types.CoroutineType):
        return "a coroutine"
    if isinstance(value, asyncio.Future):
        return "a task"
    if isinstance(value, (types.GeneratorType, types.AsyncGeneratorType)):
        return "a generator"
    if isinstance(value, io.IOBase):
        return "an open file"
    if isinstance(value, BaseException):
        return "an exception"
    if isinstance(value, complex):
        return "a complex number"
    if isinstance(value, tuple):
        return "a tuple"
    if hasattr(kind, "__next__"):
        return "an iterator"
    name = type.__getattribute__(kind, "__name__")
    article = "an" if name[:1].lower() in "aeiou" else "a"
    return f"{article} {name} object"


_LAZY = (
    types.GeneratorType,
    types.AsyncGeneratorType,
    types.CoroutineType,
    asyncio.Future,
    *_TOOLS,
    map,
    filter,
    zip,
    enumerate,
    reversed,
)


def is_pending(value) -> bool:
    """Whether this stands for work that is still to be done: to show it would hide that."""
    return isinstance(value, _LAZY)


def hint_for(kind: str) -> str:
    """A hint for a value that JSON cannot represent."""
    if kind in ("a coroutine", "a task"):
        return "Add `await` before it, or `await asyncio.gather(...)` for several."
    if kind == "a tool":
        return "Call it: mcp.server.tool(name=value)."
    if kind in ("a generator", "an iterator"):
        return "Collect its items first: list(...)."
    if kind in ("a function", "a class"):
        return "Call it and return what it gives, or leave it out."
    if kind == "an open file":
        return "Return what it holds, f.read(), or hand the file over with artifact(path)."
    if kind == "an exception":
        return "Return str(error), or let it be raised."
    if kind == "a complex number":
        return "Return [z.real, z.imag]."
    return "Return plain data: dicts, lists, strings, numbers, booleans, None; vars(obj) may do."
