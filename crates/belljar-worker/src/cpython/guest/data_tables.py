"""The `data` library, tables: rows are dicts. Joining, pivoting, CSV in and out, and a table as
text."""

import datetime
import json
import re
import unicodedata

from .data_items import (
    ABSENT,
    describe,
    is_missing,
    is_number,
    key_of,
    list_of,
    number,
    options_of,
    plain,
    text_of,
    whole_number,
)
from .data_numbers import AGGREGATES

_is_number_text = re.compile(
    r"-?(?:0|[1-9]\d{0,14})(?:\.\d+)?(?:e[+-]?\d+)?", re.IGNORECASE | re.ASCII
).fullmatch
_CSV = {"delimiter": ",", "header": True, "types": True}
_TO_CSV = {"delimiter": ",", "columns": None}
_TABLE = {"maxRows": 50, "maxWidth": 40, "columns": None}


def _column_names(rows) -> list:
    return list(dict.fromkeys(name for row in rows for name in row))


def _merged(left, right, columns, right_key) -> dict:
    """The left row with the right row's columns; a name both have gets "_right"."""
    row = dict(left)
    for name in columns:
        if name == right_key and name in left:
            continue
        row[f"{name}_right" if name in left else name] = right.get(name) if right else None
    return row


def _hashable(value):
    if value is ABSENT:
        return ABSENT
    value = plain(value)
    return (isinstance(value, bool), value) if value.__hash__ else id(value)


def _join(left, right, on, how="inner"):
    if how not in ("inner", "left"):
        raise ValueError(f'data.join: expected "inner" or "left", got {how!r}')
    names = list(on) if isinstance(on, (list, tuple)) else [on]
    left_name, right_name = names[0], names[-1]
    left_key, right_key = key_of(left_name, "join"), key_of(right_name, "join")
    right_rows = list_of(right, "join")
    columns, matches = _column_names(right_rows), {}
    for row in right_rows:
        matches.setdefault(_hashable(right_key(row)), []).append(row)
    shared = right_name if isinstance(right_name, str) else None
    result = []
    for row in list_of(left, "join"):
        found = matches.get(_hashable(left_key(row)), [None] if how == "left" else [])
        result.extend(_merged(row, match, columns, shared) for match in found)
    return result


def _aggregate(aggregate):
    if callable(aggregate):
        return aggregate
    if aggregate not in AGGREGATES:
        known = ", ".join(AGGREGATES)
        raise ValueError(
            f"data.pivot: unknown aggregate {aggregate!r}, use {known} or a function"
        )
    return AGGREGATES[aggregate]


def _pivot(items, row, column, value, aggregate="sum"):
    """One row for each value of `row`, one column for each value of `column`."""
    readers = [key_of(key, "pivot") for key in (row, column, value)]
    calculate, cells, columns = _aggregate(aggregate), {}, {}
    for item in list_of(items, "pivot"):
        name, cell, found = (read(item) for read in readers)
        cell = columns.setdefault(text_of(cell), text_of(cell))
        values = cells.setdefault(_hashable(name), (name, {}))[1].setdefault(cell, [])
        if not is_missing(found):
            values.append(found)
    row_name = row if isinstance(row, str) else "row"
    empty = 0 if aggregate in ("sum", "count") else None
    return [
        {
            **({} if name is ABSENT else {row_name: plain(name)}),
            **{cell: calculate(line[cell]) if cell in line else empty for cell in columns},
        }
        for name, line in cells.values()
    ]


def _typed(text: str):
    """Numbers and booleans as such, nothing as None; codes like 007 stay text."""
    if text == "":
        return None
    if text in ("true", "false"):
        return text == "true"
    return number(float(text)) if _is_number_text(text) else text


def _quoted(text: str, start: int):
    value, at = "", start + 1
    while True:
        end = text.find('"', at)
        if end == -1:
            raise ValueError(f"data.parseCsv: the quote at character {start} is not closed")
        value += text[at:end]
        if text[end + 1 : end + 2] != '"':
            return value, end + 1
        value, at = f'{value}"', end + 2


def _cells(text: str, delimiter: str) -> list:
    """Cells of one CSV text, by RFC 4180, each with whether it was quoted: those stay text."""
    ends = re.compile(f"{re.escape(delimiter)}|\n|\r\n|\r")
    rows, row, at = [], [], 0
    while at <= len(text):
        quoted = text[at : at + 1] == '"'
        cell, at = _quoted(text, at) if quoted else ("", at)
        end = ends.search(text, at)
        stop = end.start() if end else len(text)
        row.append((cell + text[at:stop], quoted))
        at = end.end() if end else len(text) + 1
        if end and end[0] == delimiter:
            continue
        rows.append(row)
        row = []
        if at >= len(text):
            break
    return rows


def _parse_csv(source, options=None, **named):
    source = plain(source)
    if not isinstance(source, str):
        raise TypeError(f"data.parseCsv: expected a string, got {describe(source)}")
    chosen = options_of(options, named, _CSV, "parseCsv")
    text = source[1:] if source.startswith("\ufeff") else source
    if text == "":
        return []
    rows = [row for row in _cells(text, chosen["delimiter"]) if len(row) > 1 or row[0][0] != ""]

    def convert(cell):
        text, quoted = cell
        return _typed(text.strip()) if chosen["types"] and not quoted else text

    header = chosen["header"]
    if header is False:
        return [[convert(cell) for cell in row] for row in rows]
    if isinstance(header, (list, tuple)):
        names = list(header)
    else:
        names, rows = [cell.strip() for cell, _ in rows[0]] if rows else [], rows[1:]
    return [
        {name: convert(row[at]) if at < len(row) else None for at, name in enumerate(names)}
        for row in rows
    ]


def _cell_text(value) -> str:
    value = plain(value)
    if is_missing(value):
        return ""
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    if isinstance(value, (dict, list, tuple)):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text_of(value)


def _to_csv(items, options=None, **named):
    rows = list_of(items, "toCsv")
    chosen = options_of(options, named, _TO_CSV, "toCsv")
    delimiter = chosen["delimiter"]
    columns = chosen["columns"] or _column_names(rows)

    def escaped(text: str) -> str:
        special = any(mark in text for mark in ('"', "\r", "\n", delimiter))
        return '"' + text.replace('"', '""') + '"' if special else text

    def line(values) -> str:
        return delimiter.join(escaped(_cell_text(value)) for value in values)

    return "\n".join([line(columns), *(line([row.get(one) for one in columns]) for row in rows)])


def _width(text: str) -> int:
    """Columns a text takes in a terminal."""
    wide = sum(unicodedata.east_asian_width(one) in "WF" for one in text)
    return len(text) + wide - sum(unicodedata.combining(one) > 0 for one in text)


def _table(items, options=None, **named):
    """Rows as aligned text, numbers to the right."""
    every = list_of(items, "table")
    chosen = options_of(options, named, _TABLE, "table")
    rows = every[: whole_number(chosen["maxRows"], "table", "maxRows")]
    most = whole_number(chosen["maxWidth"], "table", "maxWidth")
    columns = chosen["columns"] or _column_names(rows)

    def short(value) -> str:
        text = re.sub(r"\s+", " ", _cell_text(value))
        return f"{text[: max(0, most - 1)]}…" if len(text) > most else text

    cells = [[name, *(short(row.get(name)) for row in rows)] for name in columns]
    numeric = [
        all(is_missing(row.get(name)) or is_number(row.get(name)) for row in rows)
        for name in columns
    ]
    widths = [max(map(_width, column)) for column in cells]

    def line(at: int) -> str:
        padded = []
        for column, width, is_right in zip(cells, widths, numeric):
            space = " " * (width - _width(column[at]))
            padded.append(space + column[at] if is_right else column[at] + space)
        return "  ".join(padded).rstrip()

    lines = [line(0), "  ".join("-" * width for width in widths)]
    lines.extend(line(at) for at in range(1, len(rows) + 1))
    if len(every) > len(rows):
        lines.append(f"... {len(every) - len(rows)} more rows")
    return "\n".join(lines)


FUNCTIONS = {
    "join": _join,
    "pivot": _pivot,
    "parseCsv": _parse_csv,
    "toCsv": _to_csv,
    "table": _table,
}
