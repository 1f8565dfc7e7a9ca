"""Encodes the value of a run as JSON (A8).

Plain data goes through the C encoder of the standard library, after a check of its types, depth and
size. Other values are walked here, bounded by bytes and depth; a part that JSON cannot represent is
an error that names its place. Guest code runs only where the value's own classes override a method.
"""

import json
import math
import re

from .kinds import Unsupported, convert, describe, hint_for, is_pending, key_text
from .toolcall import ToolCall, value_of
from .wire import utf8

MAX_DEPTH = 100
MAX_PATH_CHARS = 400
MAX_SHOWN_CHARS = 200
# Beyond this a double is infinite, and readers of JSON give up.
MAX_INT = int(1.7976931348623157e308)

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_SCALARS = frozenset((str, int, float, bool, type(None)))
_encode_plain = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")
).encode
_encode_string = json.JSONEncoder(ensure_ascii=False).encode

_RETURN_LESS = (
    "Return less: the rows and fields that are needed, or a summary; write the whole to a file and "
    "name it with artifact(path)."
)
_PASS_LESS = "Pass less: several calls with a part each, or only what the tool needs."


class EncodedValue:
    """A value as JSON."""

    __slots__ = ("json", "lossy", "cut")

    def __init__(self, text: bytes, lossy: bool, cut: bool):
        self.json = text
        self.lossy = lossy
        self.cut = cut


class ValueProblem(Exception):
    """The value cannot be encoded: an error code, a message and a hint."""

    def __init__(self, code: str, message: str, hint=None, can_be_shown=False):
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        # Whether it is a thing that exists and merely has no JSON: not work that is still to be done.
        self.can_be_shown = can_be_shown


class _Misfit(Exception):
    """Something in the value has no JSON; `path` grows on the way up."""

    def __init__(self, code: str, sentence: str, hint: str, can_be_shown=True):
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence
        self.hint = hint
        self.can_be_shown = can_be_shown
        self.path = []

    def problem(self, root: str) -> ValueProblem:
        place = root + "".join(reversed(self.path))
        if len(place) > MAX_PATH_CHARS:
            place = place[:MAX_PATH_CHARS] + "…"
        message = f"{place} {self.sentence}"
        return ValueProblem(self.code, message, self.hint, self.can_be_shown)


class _TooLarge(Exception):
    """The JSON is longer than allowed."""


def encode(value, max_bytes: int, root: str = "result") -> EncodedValue:
    """The value as JSON of at most so many bytes; raises `ValueProblem`, which names places from
    `root` on. It waits for a tool call in the value and raises the tool's error."""
    try:
        plain = _plain(value, max_bytes)
        if plain is not None:
            text, lossy = _utf8_and_loss(plain)
            if len(text) > max_bytes:
                raise _TooLarge
            return EncodedValue(text, lossy, cut=False)
        walker = _Walker(max_bytes)
        walker.value(value)
        text, lossy = _utf8_and_loss("".join(walker.parts))
        if len(text) > max_bytes:
            raise _TooLarge
        return EncodedValue(text, walker.lossy or lossy, walker.cut)
    except _Misfit as misfit:
        raise misfit.problem(root) from None
    except _TooLarge:
        raise _too_large(root, max_bytes) from None


def _too_large(root: str, max_bytes: int) -> ValueProblem:
    what = {"result": "the value is", "state": "state is"}.get(root, "the arguments are")
    hint = _RETURN_LESS if root == "result" else _PASS_LESS
    return ValueProblem("limit.result", f"{what} larger than {size(max_bytes)} of JSON", hint)


def encode_as_shown(value, max_bytes: int) -> EncodedValue:
    """The value as JSON in which every part that has none is its short repr."""
    walker = _Walker(max_bytes, shows=True)
    try:
        walker.value(value)
    except _Misfit:
        # A cycle, or nested too deeply.
        walker = _Walker(max_bytes)
        walker.write(_encode_string(shown(value)))
    except _TooLarge:
        raise _too_large("result", max_bytes) from None
    text, _ = _utf8_and_loss("".join(walker.parts))
    return EncodedValue(text, lossy=True, cut=walker.cut)


def shown(value) -> str:
    """The repr of an object as far as it is the same in every run: without its address."""
    try:
        text = repr(value)
    except Exception:
        text = f"<{type(value).__name__} object>"
    text = _ADDRESS.sub("", text)
    return text if len(text) <= MAX_SHOWN_CHARS else text[:MAX_SHOWN_CHARS] + "…"


def size(count: int) -> str:
    """A size for people."""
    whole = count >= 1 << 20 and count % (1 << 20) == 0
    return f"{count >> 20} MiB" if whole else f"{count} bytes"


def _plain(value, max_bytes: int):
    """The JSON of plain data as text, None if the value needs a closer look."""
    kind = type(value)
    if kind not in _SCALARS and not _is_plain_tree(value, max_bytes):
        return None
    try:
        text = _encode_plain(value)
    except (ValueError, TypeError, RecursionError, MemoryError):
        return None
    return None if _has_long_digits(text) else text


def _utf8_and_loss(text: str):
    """The text as UTF-8, and whether a half of a surrogate pair in it has become U+FFFD."""
    try:
        return text.encode(), False
    except UnicodeEncodeError:
        data = utf8(text)
        return data, data.decode().count("\ufffd") > text.count("\ufffd")


def _is_plain_tree(value, max_items: int) -> bool:
    """Whether the value has only exact builtin types, not nested too deeply.

    Goes level by level, so that a cycle ends at the depth limit; types are collected by C code.
    """
    level, items = [value], 0
    for _ in range(MAX_DEPTH):
        below = []
        for container in level:
            kind = type(container)
            if kind is dict or kind is Attributes:
                keys = set(map(type, container))
                if keys and keys != {str}:
                    return False
                inner = container.values()
            elif kind is list or kind is tuple:
                inner = container
            else:
                return False
            items += len(container)
            if items > max_items:
                raise _TooLarge
            if not _SCALARS.issuperset(map(type, inner)):
                below.extend([item for item in inner if type(item) not in _SCALARS])
        if not below:
            return True
        level = below
    return False


def _has_long_digits(text: str) -> bool:
    """Whether there may be an integer beyond any double; a sample in every 150 characters."""
    step = 150
    return len(text) > 300 and any(
        text[at : at + step].isdigit() for at in range(0, len(text) - step, step)
    )


class Attributes(dict):
    """A dict whose keys can be read as attributes, as long as no method has the name."""

    __slots__ = ()

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            known = ", ".join(map(str, list(self)[:20])) or "nothing"
            raise AttributeError(f"no key {name!r}; the keys are: {known}") from None

    def __setattr__(self, name, value):
        self[name] = value

    def __reduce__(self):
        return (dict, (dict(self),))


class _Walker:
    def __init__(self, max_bytes: int, shows: bool = False):
        self.parts = []
        # Whether a part that has no JSON is shown instead.
        self._shows = shows
        self.lossy = False
        self.cut = False
        self._room = max_bytes
        self._containers = []

    def write(self, text: str) -> None:
        self._room -= len(text)
        if self._room < 0:
            raise _TooLarge
        self.parts.append(text)

    def value(self, value) -> None:
        kind = type(value)
        if value is None:
            self.write("null")
        elif kind is bool:
            self.write("true" if value else "false")
        elif kind is str:
            self.write(_encode_string(value))
        elif kind is int:
            self._integer(value)
        elif kind is float:
            self._float(value)
        elif kind is dict or kind is list or kind is tuple or kind is Attributes:
            self._inside(value, value)
        elif kind is ToolCall:
            self.value(value_of(value))
        else:
            self._converted(value)

    def _integer(self, value: int) -> None:
        if not -MAX_INT <= value <= MAX_INT:
            if self._shows:
                self.write(_encode_string(shown(value)))
                return
            raise _Misfit(
                "serialization.unsupported",
                "is an integer beyond the range of JSON readers",
                "Convert it with str(value).",
            )
        self.write(int.__repr__(value))

    def _float(self, value: float) -> None:
        if math.isfinite(value):
            self.write(float.__repr__(value))
        else:
            self.lossy = True
            self.write("null")

    def _converted(self, value) -> None:
        try:
            converted = convert(value, self)
        except Unsupported as unsupported:
            if self._shows:
                self.write(_encode_string(shown(value)))
                return
            kind = unsupported.what
            raise _Misfit(
                "serialization.unsupported",
                f"is {kind}, which JSON cannot represent",
                hint_for(kind),
                can_be_shown=not is_pending(value),
            ) from None
        except (_Misfit, _TooLarge, MemoryError):
            raise
        except Exception as error:  # a hostile or broken class of the agent's
            if self._shows:
                self.write(_encode_string(shown(value)))
                return
            raise _Misfit(
                "serialization.unsupported",
                f"is {describe(value)} that cannot be read: {type(error).__name__}",
                "Return plain data: dicts, lists, strings, numbers, booleans, None.",
            ) from None
        if isinstance(converted, (dict, list)) and type(converted) in (dict, list):
            self._inside(converted, value)
        else:
            self.value(converted)

    def _inside(self, container, identity) -> None:
        """Writes a container; `identity` is the object it stands for."""
        if any(outer is identity for outer in self._containers):
            raise _Misfit(
                "serialization.unsupported",
                "contains itself",
                "Return only the fields that are needed, without the circular reference.",
            )
        if len(self._containers) >= MAX_DEPTH:
            raise _Misfit(
                "serialization.depth",
                f"is nested more than {MAX_DEPTH} levels deep",
                "Return a flatter value, or json.dumps the deep part.",
                can_be_shown=False,
            )
        self._containers.append(identity)
        if isinstance(container, dict):
            self._object(container)
        else:
            self._array(container)
        self._containers.pop()

    def _array(self, items) -> None:
        self.write("[")
        for index, item in enumerate(items):
            if index:
                self.write(",")
            try:
                self.value(item)
            except _Misfit as misfit:
                misfit.path.append(f"[{index}]")
                raise
        self.write("]")

    def _object(self, entries: dict) -> None:
        if any(type(key) is not str for key in entries):
            entries = self._by_text(entries)
        self.write("{")
        is_first = True
        for text, item in entries.items():
            if not is_first:
                self.write(",")
            is_first = False
            self.write(_encode_string(text) + ":")
            try:
                self.value(item)
            except _Misfit as misfit:
                misfit.path.append(f".{text}" if text.isidentifier() else f"[{text!r}]")
                raise
        self.write("}")

    def _by_text(self, entries: dict) -> dict:
        """The entries under the texts of their keys. Of several with one text the last stays."""
        texts = {}
        for key, item in entries.items():
            text = key if type(key) is str else self._key(key)
            self.lossy |= text in texts
            texts[text] = item
        return texts

    def _key(self, key) -> str:
        text = key_text(key)
        if text is None and self._shows:
            return shown(key)
        if text is None:
            raise _Misfit(
                "serialization.unsupported",
                f"has a key that is {describe(key)}: {_short_repr(key)}",
                "Keys must be text, numbers, dates or the like; turn others into text.",
            )
        return text

    def refuse_over(self, count: int) -> None:
        """Stops early when so many items cannot fit."""
        if count * 2 > self._room:
            raise _TooLarge


def _short_repr(value) -> str:
    try:
        text = repr(value)
    except Exception:
        return type(value).__name__
    return text if len(text) <= 80 else text[:80] + "…"
