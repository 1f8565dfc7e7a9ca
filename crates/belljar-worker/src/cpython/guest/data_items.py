"""The `data` library, lists: grouping, counting, sorting, picking. Also the parts that its other
files share: reading keys and lists, and errors about other arguments."""

import datetime
import functools
import math
import re
from collections.abc import Iterable, Mapping

from .toolcall import ToolCall, value_of

_PARTS = re.compile(r"[^.\[\]]+|\[\*?\]").findall
_RANKS = {int: 0, float: 0, bool: 1, str: 2}


class _Absent:
    """The mark for an absent value, which is not the same as None."""

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "nothing"


ABSENT = _Absent()


def describe(value) -> str:
    """A value, described for an error message."""
    if value is None or value is ABSENT:
        return "None"
    return f"{'an' if type(value).__name__[0] in 'aeiou' else 'a'} {type(value).__name__}"


def plain(value):
    """A value as guest code sees it: None if it is absent, and the result of a tool in place of its
    call."""
    if value is ABSENT:
        return None
    return value_of(value) if type(value) is ToolCall else value


def list_of(items, where: str) -> list:
    """A list from any iterable; a dict gets advice instead."""
    items = plain(items)
    if isinstance(items, list):
        return items
    if isinstance(items, Iterable) and not isinstance(items, (str, bytes, Mapping)):
        return list(items)
    advice = " (use .values() or .items())" if isinstance(items, Mapping) else ""
    raise TypeError(f"data.{where}: expected a list, got {describe(items)}{advice}")


def path_parts(path: str) -> list:
    """The steps of a path such as a.b[0].c."""
    return _PARTS(path)


def step(holder, part):
    """One step into a value."""
    holder = plain(holder)
    if isinstance(holder, Mapping):
        return holder.get(part, ABSENT)
    if isinstance(holder, (list, tuple, str)):
        index = int(part) if isinstance(part, int) or str(part).isdigit() else -1
        return holder[index] if 0 <= index < len(holder) else ABSENT
    return ABSENT if holder is None else getattr(holder, str(part), ABSENT)


def read_path(value, path):
    """Reads a key, or a path like a.b[0].c when there is no key of that name."""
    value = plain(value)
    is_key = isinstance(value, Mapping) and path in value
    if is_key or not isinstance(path, str) or not ("." in path or "[" in path):
        return step(value, path)
    for part in path_parts(path):
        value = step(value, part)
        if value is None or value is ABSENT:
            return ABSENT
    return value


def key_of(key, where: str):
    """A key is a function, or the name of a key."""
    if callable(key):
        return key
    if isinstance(key, (str, int)):
        return lambda item: read_path(item, key)
    raise TypeError(f"data.{where}: a key must be a function or a name, got {describe(key)}")


def key_or(key, where: str):
    """The same, or the item itself."""
    return (lambda item: item) if key is None else key_of(key, where)


def is_missing(value) -> bool:
    """None, nothing and NaN."""
    return value is None or value is ABSENT or (isinstance(value, float) and math.isnan(value))


def is_number(value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def number(value):
    """A number as JSON has it: whole ones without a fraction."""
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return int(value) if whole else value


def text_of(value) -> str:
    """A value as the name of a group, as it is in either language."""
    value = value_of(value) if type(value) is ToolCall else value
    if value is ABSENT:
        return "undefined"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return re.sub(r"e-0", "e-", repr(number(value)))
    if isinstance(value, (list, tuple)):
        return ",".join("" if is_missing(item) else text_of(item) for item in value)
    return value.isoformat() if isinstance(value, datetime.date) else str(value)


def comparable(value):
    """A date by its time, anything else as it is."""
    if isinstance(value, datetime.datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=datetime.timezone.utc)
        return aware.timestamp() * 1000
    if isinstance(value, datetime.date):
        moment = datetime.datetime(value.year, value.month, value.day, tzinfo=datetime.timezone.utc)
        return moment.timestamp() * 1000
    return value


def compare(a, b) -> int:
    """Numbers, then booleans, then texts, each in their order; dates by time; nothing comes last."""
    a, b = comparable(a), comparable(b)
    if is_missing(a) or is_missing(b):
        return is_missing(a) - is_missing(b)
    order = _RANKS.get(type(a), 3) - _RANKS.get(type(b), 3)
    if order:
        return order
    try:
        return -1 if a < b else 1 if a > b else 0
    except TypeError:
        return 0


def groups(items, key, where: str) -> dict:
    """The items under the texts of their keys."""
    read, found = key_of(key, where), {}
    for item in list_of(items, where):
        found.setdefault(text_of(read(item)), []).append(item)
    return found


def whole_number(value, where: str, name: str) -> int:
    """Checks an argument that is a count."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"data.{where}: {name} must be a whole number, got {value!r}")
    return value


def options_of(options, named: dict, known: dict, where: str) -> dict:
    """Options as a dict, by name, or both, in either spelling."""
    found = dict(known)
    plain_names = {name.replace("_", "").lower(): name for name in known}
    for name, value in {**(options or {}), **named}.items():
        right = plain_names.get(name.replace("_", "").lower())
        if right is None:
            raise TypeError(f"data.{where}: no option {name!r}; the options are: {', '.join(known)}")
        found[right] = value
    return found


def _sort_keys(keys) -> list:
    """Keys as given: "age", "desc" or ["age", "desc"] or "age", "name"."""
    orders = []
    for key in keys:
        if key in ("desc", "asc"):
            if not orders:
                raise TypeError(f"data.sortBy: {key!r} must follow a key")
            orders[-1] = (orders[-1][0], -1 if key == "desc" else 1)
        elif isinstance(key, (list, tuple)):
            orders.append((key_of(key[0], "sortBy"), -1 if key[1:] and key[1] == "desc" else 1))
        else:
            orders.append((key_of(key, "sortBy"), 1))
    return orders or [(lambda item: item, 1)]


def _sorted(items: list, orders: list) -> list:
    def order(left, right) -> int:
        for (_, sign), a, b in zip(orders, left[1], right[1]):
            # Missing values stay at the end in either direction.
            found = compare(a, b) * (1 if is_missing(a) or is_missing(b) else sign)
            if found:
                return found
        return 0

    rows = [(item, [read(item) for read, _ in orders]) for item in items]
    return [item for item, _ in sorted(rows, key=functools.cmp_to_key(order))]


def _extreme(items, key, where: str, sign: int):
    read, best, best_value = key_or(key, where), None, None
    for item in list_of(items, where):
        value = read(item)
        if not is_missing(value) and (best_value is None or compare(value, best_value) * sign > 0):
            best, best_value = item, value
    return best


def _matcher(test, where: str):
    if callable(test):
        return test
    if isinstance(test, str):
        return lambda item: bool(read_path(item, test))
    if not isinstance(test, Mapping):
        raise TypeError(
            f"data.{where}: a test must be a function, a name or a dict, got {describe(test)}"
        )
    return lambda item: all(plain(read_path(item, name)) == value for name, value in test.items())


def _each_row(value, where: str, change):
    value = plain(value)
    if isinstance(value, (list, tuple)):
        return [change(row) for row in value]
    if isinstance(value, Mapping):
        return change(value)
    raise TypeError(f"data.{where}: expected a dict or a list of them, got {describe(value)}")


def _names(keys) -> list:
    names = []
    for key in keys:
        names.extend(map(str, key) if isinstance(key, (list, tuple, set)) else [str(key)])
    return list(dict.fromkeys(names))


def _pick(value, *keys):
    names = _names(keys)
    return _each_row(value, "pick", lambda row: {name: row[name] for name in names if name in row})


def _omit(value, *keys):
    names = _names(keys)
    kept = lambda row: {name: item for name, item in row.items() if name not in names}
    return _each_row(value, "omit", kept)


def _unique_by(items, key=None):
    read, seen, kept = key_or(key, "uniqueBy"), set(), []
    for item in list_of(items, "uniqueBy"):
        value = read(item)
        # True and 1 are two values, though Python takes them for one.
        known = (type(value), value) if value.__hash__ else id(value)
        if known not in seen:
            seen.add(known)
            kept.append(item)
    return kept


def _chunk(items, size):
    if whole_number(size, "chunk", "size") == 0:
        raise ValueError("data.chunk: size must be at least 1")
    items = list_of(items, "chunk")
    return [items[at : at + size] for at in range(0, len(items), size)]


def _flatten(items, depth=1):
    flat = []
    for item in list_of(items, "flatten"):
        if isinstance(item, (list, tuple)) and depth > 0:
            flat.extend(_flatten(item, depth - 1))
        else:
            flat.append(item)
    return flat


def _partition(items, test):
    matches, halves = _matcher(test, "partition"), ([], [])
    for item in list_of(items, "partition"):
        halves[0 if matches(item) else 1].append(item)
    return list(halves)


def _zip(*lists):
    columns = [list_of(one, "zip") for one in lists]
    length = max(map(len, columns), default=0)
    return [[one[at] if at < len(one) else None for one in columns] for at in range(length)]


def _top_k(items, k, key=None):
    orders = [(key_or(key, "topK"), -1)]
    return _sorted(list_of(items, "topK"), orders)[: whole_number(k, "topK", "k")]


FUNCTIONS = {
    "filter": lambda items, test: list(filter(_matcher(test, "filter"), list_of(items, "filter"))),
    "map": lambda items, key: [plain(key_of(key, "map")(item)) for item in list_of(items, "map")],
    "groupBy": lambda items, key: groups(items, key, "groupBy"),
    "countBy": lambda items, key: {
        name: len(group) for name, group in groups(items, key, "countBy").items()
    },
    "sortBy": lambda items, *keys: _sorted(list_of(items, "sortBy"), _sort_keys(keys)),
    "topK": _top_k,
    "minBy": lambda items, key=None: _extreme(items, key, "minBy", -1),
    "maxBy": lambda items, key=None: _extreme(items, key, "maxBy", 1),
    "uniqueBy": _unique_by,
    "indexBy": lambda items, key: {
        name: group[-1] for name, group in groups(items, key, "indexBy").items()
    },
    "pick": _pick,
    "omit": _omit,
    "chunk": _chunk,
    "flatten": _flatten,
    "partition": _partition,
    "zip": _zip,
}
