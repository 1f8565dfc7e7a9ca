"""Restricted mode (A2): refuses modules and builtins that were not granted.

Guest code gets a table of builtins of its own, in which `__import__` and a few calls refuse. The
standard library and installed packages keep the real ones and may import anything. This gives early
advice in plain words; it is not the sandbox. The cell around the process confines guest code.
"""

import builtins
import importlib.machinery
import sys

_REFUSED_MODULES = {
    "subprocess": "subprocess",
    "_posixsubprocess": "subprocess",
    "socket": "socket",
    "_socket": "socket",
    "ctypes": "ctypes",
    "_ctypes": "ctypes",
    "multiprocessing": "multiprocessing",
    "_multiprocessing": "multiprocessing",
    "importlib": "importlib",
    "_imp": "importlib",
    "_frozen_importlib": "importlib",
    "_frozen_importlib_external": "importlib",
    "pickle": "pickle",
    "_pickle": "pickle",
}
_REFUSED_CALLS = ("exec", "eval", "compile", "input")
_INSTEAD = {
    "socket": "There is no network in a run; pass data in with `context`.",
    "pickle": "json, or DataFrame.to_csv and to_parquet, store data without it.",
    "importlib": "Use a plain import statement.",
    "multiprocessing": "Use concurrent.futures.ThreadPoolExecutor instead.",
    "eval": "ast.literal_eval and json.loads read data.",
    "input": "There is no input during a run; data is in `context`.",
}


class Refusal(PermissionError):
    """A refusal of restricted mode; agents see it as the PermissionError it is."""

    def __init__(self, what: str, grant: str):
        super().__init__(
            f"{what} is refused in restricted mode; grant it with --module {grant}"
        )
        self.grant = grant


Refusal.__module__ = "builtins"
Refusal.__name__ = Refusal.__qualname__ = "PermissionError"


def hint_for(refusal: Refusal) -> str:
    """The hint for a refusal."""
    instead = _INSTEAD.get(refusal.grant)
    ask = f"Ask for --module {refusal.grant} if there is no other way."
    return f"{instead} {ask}" if instead else ask


def terms(grants: dict):
    """The facts that decide the builtins of a run: runs with equal terms share them."""
    return bool(grants.get("permissive")), tuple(grants.get("modules", ()))


def refusing_builtins(grants: dict, link) -> dict:
    """The replacements of builtins for guest code."""
    if grants.get("permissive"):
        return {}
    granted = set(grants.get("modules", ()))
    table = {"__import__": _importer(granted, link)}
    for name in _REFUSED_CALLS:
        if name not in granted:
            table[name] = _refused_call(name, link)
    return table


def _importer(granted: set, link):
    real = builtins.__import__

    def __import__(name, globals=None, locals=None, fromlist=(), level=0):
        top = name.partition(".")[0] if isinstance(name, str) else ""
        grant = _REFUSED_MODULES.get(top)
        if grant and level == 0 and not _is_granted(name, top, grant, granted):
            link.denied(f"import {name}")
            raise Refusal(f"import {name}", grant)
        return real(name, globals, locals, fromlist, level)

    return __import__


def _is_granted(name: str, top: str, grant: str, granted: set) -> bool:
    if top in granted or grant in granted:
        return True
    return any(name == one or name.startswith(f"{one}.") for one in granted)


def _refused_call(name: str, link):
    def refused(*_arguments, **_options):
        link.denied(f"{name}()")
        raise Refusal(f"{name}()", name)

    refused.__name__ = refused.__qualname__ = name
    return refused


class _Loader(importlib.machinery.SourceFileLoader):
    """Runs a module of the agent's with the builtins of guest code."""

    table: dict = {}

    def exec_module(self, module):
        module.__dict__["__builtins__"] = self.table
        super().exec_module(module)


class _Finder(importlib.machinery.FileFinder):
    """Reads the directory each time: a new file may leave the modification time of its directory
    unchanged, so a caching finder would miss it."""

    def find_spec(self, fullname, target=None):
        self.invalidate_caches()
        return super().find_spec(fullname, target)


def import_from_workspace(work: str, table: dict) -> None:
    """Lets guest code import modules it wrote, under the same rules."""
    if _Loader.table is not table:
        _Loader.table = table
    if type(sys.path_importer_cache.get(work)) is not _Finder:
        sources = (_Loader, importlib.machinery.SOURCE_SUFFIXES)
        native = (importlib.machinery.ExtensionFileLoader, importlib.machinery.EXTENSION_SUFFIXES)
        sys.path_importer_cache[work] = _Finder(work, native, sources)
    if sys.path[:1] != [work]:
        sys.path[:] = [work] + [path for path in sys.path if path not in ("", ".", work)]
