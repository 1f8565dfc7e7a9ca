"""Warming, in the zygote, before any cell exists: imports, patches, a rehearsal.

An import here costs a run nothing. Warming must end with one thread and no open file.
"""

import gc
import importlib
import os
import warnings

_STDLIB = """
    abc argparse array ast asyncio base64 binascii bisect calendar cmath codecs collections
    collections.abc colorsys concurrent.futures concurrent.futures.thread configparser contextlib
    contextvars copy csv dataclasses datetime decimal difflib email.message email.mime.text
    encodings.idna enum errno fnmatch fractions functools gc getpass glob gzip hashlib heapq hmac
    html html.parser http inspect io ipaddress itertools json keyword linecache locale logging
    lzma bz2 math mimetypes numbers operator os pathlib platform pprint queue random re reprlib
    secrets select selectors shlex shutil signal socket sqlite3 stat statistics string struct
    subprocess sys tarfile tempfile textwrap threading time timeit tokenize tomllib traceback types
    typing unicodedata unittest urllib.parse urllib.request uuid warnings weakref
    xml.etree.ElementTree zipfile zlib zoneinfo pickle importlib.util importlib.metadata _strptime
""".split()
# Often enough for Python to specialize its bytecode.
_TIMES = 20
_ONE_THREAD = (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


def warm(data: bool) -> None:
    """Makes the first cell possible; with `data` numpy and pandas are imported."""
    from . import absent, patches, procfs
    from .cell import prepare, rehearse
    from .run import prepare_zygote

    procfs.apply()
    patches.apply()
    absent.apply()
    if data:
        _warm_data()
    prepare_zygote()
    warnings.filterwarnings("ignore", message=".*non-interactive, and thus cannot be shown")
    prepare()
    rehearse()
    _warm_errors()
    _warm_calls()
    gc.set_threshold(10_000, 20, 20)
    _settle()


def warm_further() -> None:
    """Imports modules that guest code is likely to use; after the first cell, because there may be
    no other."""
    from . import data
    from .cell import prepare, rehearse

    for name in _STDLIB:
        _import(name)
    data.load()
    prepare()
    for _ in range(_TIMES):
        rehearse()
    _settle()


def _settle() -> None:
    """Freezes all objects made so far, so that no cell's garbage collector touches them."""
    gc.collect()
    gc.freeze()


def _import(name: str):
    try:
        return importlib.import_module(name)
    except Exception:  # guest code will get the same error
        return None


def _warm_data() -> None:
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    try:
        numpy = _import("numpy")
        pandas = _import("pandas")
        if numpy is not None:
            numpy.random.seed(0)
            numpy.linalg.norm(numpy.arange(4.0).reshape(2, 2) @ numpy.ones((2, 2)))
        if pandas is not None:
            _exercise_pandas(pandas)
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _exercise_pandas(pandas) -> None:
    import io

    text = "city,day,n\nRome,2024-01-01,1\nOslo,2024-01-02,2\nRome,2024-01-03,3\n"
    frame = pandas.read_csv(io.StringIO(text), parse_dates=["day"])
    frame["m"] = frame["n"] * 1.5
    grouped = frame.groupby("city").agg({"n": "sum", "m": "mean"}).reset_index()
    merged = frame.merge(grouped, on="city", suffixes=("", "_all")).sort_values("n")
    merged.pivot_table(index="city", columns="n", values="m")
    merged.to_csv(io.StringIO())
    merged.to_dict("records")
    merged.describe()
    str(merged)
    frame.set_index("day").resample("D").sum(numeric_only=True)


class _Echo:
    """Answers every call at once with null."""

    def check(self, _link) -> None:
        """Any call can be made."""

    def wait(self, pending, calls) -> None:
        calls.deliver([(2, b'{"call":%d,"ok":true,"now_ms":null}' % pending.number, b"null")])


def _warm_calls() -> None:
    """Calls a tool that does not exist."""
    from .calls import Calls
    from .toolnames import make_names
    from .trace import Source
    from .wire import Link

    calls = Calls(Link(None), Source(__file__, os.sep), {"result_bytes": 1 << 20}, _Echo())
    mcp = make_names(calls)["mcp"]
    for number in range(_TIMES):
        mcp.server.tool(number=number)


def _warm_errors() -> None:
    """Formats one error, because many runs do."""
    from .errors import Reporter
    from .trace import Source
    from .wire import Link

    reporter = Reporter(Source(__file__, os.sep), {}, Link(None))
    try:
        int("x")
    except ValueError as error:
        reporter.thrown(error)
