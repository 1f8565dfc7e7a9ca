"""The `data` library, small answers: reading one place of a big value, and cutting a value down to
a size for a model."""

import json
import re
from collections.abc import Mapping

from .data_items import ABSENT, describe, path_parts, plain, read_path, step, whole_number

# From generous to stingy: the first that fits is taken.
_STEPS = (
    (200, 1000, 8), (100, 500, 8), (50, 300, 8), (25, 200, 7), (12, 120, 6), (8, 80, 6),
    (5, 60, 5), (4, 40, 5), (3, 30, 4), (2, 30, 4), (1, 20, 3), (1, 20, 1),
)  # fmt: skip


def _select(value, path):
    """The value at a path: a.b[0].c; [*] takes every element of a list. None if there is no
    value."""
    if not isinstance(path, str):
        raise TypeError(f"data.select: the path must be a string, got {describe(path)}")
    if not re.search(r"\[\*?\]", path):
        return plain(read_path(value, path))

    def walk(holder, parts):
        holder = plain(holder)
        if not parts or holder is None:
            return holder
        if parts[0] not in ("[*]", "[]"):
            found = step(holder, parts[0])
            return None if found is ABSENT else walk(found, parts[1:])
        return [walk(item, parts[1:]) for item in holder] if isinstance(holder, list) else None

    return walk(value, path_parts(path))


def _json(value) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def _cut(text: str, length: int) -> str:
    if len(text) <= length:
        return text
    kept = max(0, length)
    return f"{text[:kept]}… ({len(text) - kept} more characters)"


def _shrink(value, items: int, length: int, depth: int):
    """A copy with at most `items` elements a list, `length` characters a text, `depth` levels."""
    value = plain(value)
    if isinstance(value, str):
        return _cut(value, length)
    if isinstance(value, (list, tuple)):
        if depth == 0:
            return f"[… {len(value)} items]"
        kept = [_shrink(item, items, length, depth - 1) for item in value[:items]]
        return [*kept, f"… {len(value) - items} more items"] if len(value) > items else kept
    if not isinstance(value, Mapping):
        return value
    if depth == 0:
        return "{…}"
    kept = {
        name: _shrink(item, items, length, depth - 1) for name, item in list(value.items())[:items]
    }
    if len(value) > items:
        kept["…"] = f"{len(value) - items} more properties"
    return kept


def _truncate(value, maxChars=2000, **named):  # noqa: N803 - the name it has in TypeScript
    """The value itself when its JSON has at most so many characters, else a shortened copy."""
    limit = whole_number(named.pop("max_chars", maxChars), "truncate", "maxChars")
    value = plain(value)
    if len(_json(value)) <= limit:
        return value
    if isinstance(value, str):
        note = f"… ({len(value)} more characters)"
        return _cut(value, max(0, limit - len(note) - 2))
    for items, length, depth in _STEPS:
        shorter = _shrink(value, items, length, depth)
        if len(_json(shorter)) <= limit:
            return shorter
    return _cut(_json(value), max(0, limit - 40))


FUNCTIONS = {"select": _select, "truncate": _truncate}
