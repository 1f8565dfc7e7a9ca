"""The functions guest code finds beside the builtins (A11)."""

import errno
import json
import os
import pprint
import sys

from .data import Data
from .value import Attributes, ValueProblem, encode

_MAX_SHOWN_BYTES = 1 << 20
_decode = json.JSONDecoder(object_hook=Attributes).decode


def parse_context(data: bytes):
    """The caller's context; raises ValueError."""
    if not data:
        return Attributes()
    return _decode(data.decode())


def make_helpers(link, work: str) -> dict:
    """The helpers of one run."""

    def output(value):
        """Prints a value to standard output, and returns it."""
        sys.stdout.write(f"{_shown(value)}\n")
        return value

    def display(*values, **_options):
        """What notebooks call to show values: prints each as `output` does."""
        for value in values:
            output(value)

    def debug(value, label=None):
        """Writes a value to the log, and returns it."""
        text = _inspected(value)
        text = text if label is None else f"{label}: {text}"
        link.print("log", text.encode("utf-8", "backslashreplace"))
        return value

    def artifact(path):
        """Names a file of the workspace that comes back beside the value; returns its path."""
        full = os.path.realpath(os.path.join(work, os.fsdecode(os.fspath(path))))
        if not os.path.exists(full):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        if not full.startswith(f"{os.path.realpath(work)}/"):
            raise ValueError(f"artifact() takes a file under {work}, not {full}")
        if not os.path.isfile(full):
            raise ValueError(f"artifact() takes a file, but {full} is not a regular file")
        link.artifact(full)
        return full

    return {
        "output": output,
        "display": display,
        "debug": debug,
        "artifact": artifact,
        "data": Data(),
    }


def _shown(value) -> str:
    if isinstance(value, str):
        return value
    if type(value).__module__.partition(".")[0] in ("pandas", "numpy"):
        return str(value)
    try:
        encoded = encode(value, _MAX_SHOWN_BYTES)
        return json.dumps(json.loads(encoded.json), indent=2, ensure_ascii=False)
    except ValueProblem:
        # Not JSON, but Python can show it.
        return _inspected(value)


def _inspected(value) -> str:
    if isinstance(value, (dict, list, tuple, set, frozenset)):
        return pprint.pformat(value, width=100, sort_dicts=False)
    return repr(value)
