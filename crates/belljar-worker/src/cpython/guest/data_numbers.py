"""The `data` library, numbers: sums, means, percentiles, histograms and summaries."""

import datetime
import functools
import math
from collections.abc import Mapping

from .data_items import (
    comparable,
    compare,
    describe,
    groups,
    is_missing,
    is_number,
    key_or,
    list_of,
    number,
    options_of,
    plain,
)

MAX_BINS = 1000
TOP_VALUES = 5
_HISTOGRAM = {"bins": 10, "key": None, "min": None, "max": None}


def _sum(numbers):
    return number(math.fsum(numbers))


def _mean(numbers):
    return number(math.fsum(numbers) / len(numbers)) if numbers else None


def _numbers(items, key, where: str) -> list:
    """Numbers of a list, read by a key, without missing values."""
    read, numbers = key_or(key, where), []
    for item in list_of(items, where):
        value = comparable(plain(read(item)))
        if is_missing(value):
            continue
        if not is_number(value):
            raise TypeError(f"data.{where}: expected a number, got {describe(value)}")
        numbers.append(value)
    return numbers


def _per_group(items, value, by, where: str, calculate):
    """For the whole list, or for each group when there is a `by`."""
    if by is None:
        return calculate(_numbers(items, value, where))
    found = groups(items, by, where).items()
    return {name: calculate(_numbers(group, value, where)) for name, group in found}


def _percentile_of(ascending: list, percent):
    """Between the two nearest ranks, as spreadsheets do it."""
    if not ascending:
        return None
    rank = percent / 100 * (len(ascending) - 1)
    low, high = math.floor(rank), math.ceil(rank)
    return number(ascending[low] + (ascending[high] - ascending[low]) * (rank - low))


def _percentile(items, percent, key=None):
    if not is_number(percent) or not 0 <= percent <= 100:
        raise ValueError(
            f"data.percentile: the percentile must be between 0 and 100, got {percent!r}"
        )
    return _percentile_of(sorted(_numbers(items, key, "percentile")), percent)


def _deviation(numbers: list):
    if len(numbers) < 2:
        return 0
    middle = math.fsum(numbers) / len(numbers)
    squares = math.fsum((one - middle) ** 2 for one in numbers)
    return number(math.sqrt(squares / (len(numbers) - 1)))


def _summarise_numbers(numbers: list) -> dict:
    ascending = sorted(numbers)
    return {
        "count": len(numbers),
        "min": number(ascending[0]) if ascending else None,
        "max": number(ascending[-1]) if ascending else None,
        "mean": _mean(numbers),
        "median": _percentile_of(ascending, 50),
        "p95": _percentile_of(ascending, 95),
        "sum": _sum(numbers),
        "stdev": _deviation(numbers),
    }


def _type_of(value) -> str:
    """The name of a column's type, in either language."""
    if isinstance(value, bool):
        return "boolean"
    kinds = (
        ((int, float), "number"),
        (str, "string"),
        (datetime.date, "date"),
        ((list, tuple), "array"),
    )
    return next((name for kind, name in kinds if isinstance(value, kind)), "object")


def _top_values(values: list) -> dict:
    counts = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1

    def order(a, b) -> int:
        return b[1] - a[1] or compare(a[0], b[0])

    ranked = sorted(counts.items(), key=functools.cmp_to_key(order))
    top = [{"value": value, "count": count} for value, count in ranked[:TOP_VALUES]]
    return {"distinct": len(counts), "top": top}


def _summarise_column(values: list) -> dict:
    present = [value for value in map(plain, values) if not is_missing(value)]
    types = sorted(set(map(_type_of, present)))
    column = {
        "type": "|".join(types) or "null",
        "count": len(present),
        "nulls": len(values) - len(present),
    }
    if types == ["number"]:
        return {**column, **_summarise_numbers(present)}
    if types == ["date"]:
        return {**column, "min": min(present, key=comparable), "max": max(present, key=comparable)}
    if types in (["string"], ["boolean"]):
        return {**column, **_top_values(present)}
    return column


def _summarise(items, key=None):
    items = list_of(items, "summarise")
    if key is not None:
        return _summarise_numbers(_numbers(items, key, "summarise"))
    present = [item for item in map(plain, items) if not is_missing(item)]
    if present and all(isinstance(item, Mapping) for item in present):
        names = dict.fromkeys(name for row in present for name in row)
        columns = {name: _summarise_column([row.get(name) for row in present]) for name in names}
        return {"count": len(present), "columns": columns}
    odd = next((item for item in present if not is_number(item)), None)
    if odd is not None:
        raise TypeError(f"data.summarise: expected numbers or rows, got {describe(odd)} among them")
    return _summarise_numbers(present)


def _histogram(items, options=None, **named):
    options = {"bins": options} if isinstance(options, int) else options
    chosen = options_of(options, named, _HISTOGRAM, "histogram")
    bins = chosen["bins"]
    if isinstance(bins, bool) or not isinstance(bins, int) or not 1 <= bins <= MAX_BINS:
        raise ValueError(f"data.histogram: bins must be between 1 and {MAX_BINS}, got {bins!r}")
    numbers = _numbers(items, chosen["key"], "histogram")
    if not numbers:
        return []
    low = min(numbers) if chosen["min"] is None else chosen["min"]
    high = max(numbers) if chosen["max"] is None else chosen["max"]
    if high < low:
        raise ValueError("data.histogram: max is below min")
    width = (high - low) / bins or 1

    def edge(at: int):
        return number(high if at == bins and high > low else low + at * width)

    found = [
        {"from": edge(at), "to": edge(at + 1), "count": 0}
        for at in range(bins if high > low else 1)
    ]
    for one in numbers:
        if low <= one <= high:
            found[min(math.floor((one - low) / width), len(found) - 1)]["count"] += 1
    return found


AGGREGATES = {
    "sum": _sum,
    "mean": _mean,
    "count": len,
    "min": lambda values: min(values, key=functools.cmp_to_key(compare), default=None),
    "max": lambda values: max(values, key=functools.cmp_to_key(compare), default=None),
    "first": lambda values: values[0] if values else None,
    "last": lambda values: values[-1] if values else None,
}

FUNCTIONS = {
    "sumBy": lambda items, value=None, by=None: _per_group(items, value, by, "sumBy", _sum),
    "meanBy": lambda items, value=None, by=None: _per_group(items, value, by, "meanBy", _mean),
    "percentile": _percentile,
    "histogram": _histogram,
    "summarise": _summarise,
}
