"""numpy and pandas objects in JSON (A8).

This module imports neither: such a value exists only after guest code has imported them. Arrays
become lists, scalars become numbers, a DataFrame becomes its first thousand records.
"""

import datetime
import sys

MAX_ROWS = 1000


def convert(value, walker):
    """`(True, nearer to JSON)` for values of numpy or pandas, else `(False, None)`."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not hasattr(numpy, "ndarray"):
        return False, None
    if isinstance(value, numpy.ndarray):
        walker.refuse_over(value.size)
        return True, _array(value, numpy)
    if isinstance(value, numpy.generic):
        return True, _scalar(value, numpy)
    pandas = sys.modules.get("pandas")
    if pandas is None or not hasattr(pandas, "DataFrame"):
        return False, None
    return _pandas(value, pandas, walker)


def _array(value, numpy):
    if value.dtype.kind == "M":
        value = value.astype("datetime64[us]")
    elif value.dtype.kind == "m":
        value = value / numpy.timedelta64(1, "s")
    return value.tolist()


def _scalar(value, numpy):
    if value.dtype.kind == "M":
        return value.astype("datetime64[us]").item()
    if value.dtype.kind == "m":
        return float(value / numpy.timedelta64(1, "s"))
    item = value.item()
    if isinstance(item, numpy.generic):
        # A long double is its own item.
        return float(item)
    return item


def _pandas(value, pandas, walker):
    if value is pandas.NaT or value is pandas.NA:
        return True, None
    if isinstance(value, pandas.DataFrame):
        if len(value) > MAX_ROWS:
            value = value.head(MAX_ROWS)
            walker.cut = True
        return True, _records(value, pandas)
    if isinstance(value, pandas.Series):
        walker.refuse_over(len(value))
        return True, _series(value, pandas)
    if isinstance(value, (pandas.Index, pandas.api.extensions.ExtensionArray)):
        walker.refuse_over(len(value))
        return True, _items(value)
    if isinstance(value, (pandas.Period, pandas.Interval)):
        return True, str(value)
    if isinstance(value, pandas.Timestamp):
        return True, value.isoformat()
    if isinstance(value, pandas.Timedelta):
        return True, value.total_seconds()
    return False, None


def _records(frame, pandas):
    """One dict per row. An index with meaning becomes columns."""
    columns = [(_label(name), _items(frame.iloc[:, at])) for at, name in enumerate(frame.columns)]
    columns = _index_columns(frame, pandas) + columns
    names = [name for name, _ in columns]
    rows = zip(*(items for _, items in columns))
    return [dict(zip(names, row)) for row in rows] if columns else [{} for _ in range(len(frame))]


def _index_columns(frame, pandas):
    index = frame.index
    if isinstance(index, pandas.MultiIndex):
        levels = range(index.nlevels)
        return [
            (_label(index.names[at] or f"level_{at}"), _items(index.get_level_values(at)))
            for at in levels
        ]
    if index.name is None and index.dtype.kind in "iu":
        return []
    taken = {_label(name) for name in frame.columns}
    name = _label(index.name) if index.name is not None else "index"
    return [] if name in taken else [(name, _items(index))]


def _series(series, pandas):
    if isinstance(series.index, pandas.RangeIndex) and series.index.start == 0:
        return _items(series)
    keys = [_label(key) for key in series.index]
    items = _items(series)
    if len(set(keys)) == len(keys):
        return dict(zip(keys, items))
    return [{"index": key, "value": item} for key, item in zip(keys, items)]


def _items(values):
    return list(values.tolist())


def _label(name) -> str:
    """The name of a column or row as a key; levels are joined by a dot."""
    if isinstance(name, tuple):
        return ".".join(str(part) for part in name if part != "")
    if isinstance(name, datetime.datetime):
        return name.isoformat()
    return str(name)


def key_text(key):
    """The text of a key that is numpy's or pandas', else None."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(key, getattr(numpy, "generic", ())):
        return str(key.item())
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(key, getattr(pandas, "Period", ())):
        return str(key)
    return None
