"""Restricted mode (A2): refuses modules and builtins that were not granted.

Guest code has Python's own builtins, so that `builtins.open = ...` and `unittest.mock` do what they do
anywhere. What restricted mode refuses is looked for in the source instead: an import of a refused
module is preceded by a check, and the names of a few calls pass through one. The standard library and
installed packages are not rewritten, and import what they like. This is advice, given early and in
plain words; what bounds guest code is the cell around the process.
"""

import ast
import builtins
import importlib.machinery
import re
import sys

# The functions that the rewritten code calls; both are found among the builtins.
CHECK = "__belljar_check_import__"
GUARD = "__belljar_guard__"

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
_IMPORT = "__import__"
# The functions that the guarded names stand for, unless the code gives the names another meaning.
_real = {name: getattr(builtins, name) for name in (*_REFUSED_CALLS, _IMPORT)}
_mentions = re.compile(rf"\b(?:{'|'.join((*_REFUSED_MODULES, *_real))})\b").search
_INSTEAD = {
    "socket": "There is no network in a run beyond granted hosts; pass data in with `context`.",
    "pickle": "json, or DataFrame.to_csv and to_parquet, store data without it.",
    "importlib": "Use a plain import statement.",
    "multiprocessing": "Use concurrent.futures.ThreadPoolExecutor instead.",
    "eval": "ast.literal_eval and json.loads read data.",
    "input": "There is no input during a run; data is in `context`.",
}


class Refusal(PermissionError):
    """A refusal of restricted mode; agents see it as the PermissionError it is."""

    def __init__(self, what: str, grant: str):
        super().__init__(f"{what} is refused in restricted mode: {grant} is not granted")
        self.grant = grant


Refusal.__module__ = "builtins"
Refusal.__name__ = Refusal.__qualname__ = "PermissionError"


def hint_for(refusal: Refusal) -> str:
    """What to do instead of what was refused."""
    return _INSTEAD.get(refusal.grant, "")


class Rules:
    """What the code of the run that is under way may use. Functions of earlier runs of a session ask
    the same object."""

    def __init__(self, link):
        self._link = link
        self._permissive = False
        self._granted = frozenset()

    def set(self, grants: dict) -> None:
        """A run begins that was granted this."""
        self._permissive = bool(grants.get("permissive"))
        self._granted = frozenset(grants.get("modules", ()))

    def names(self) -> dict:
        """What rewritten code calls."""
        return {CHECK: self._check, GUARD: self._guard}

    def _check(self, name) -> None:
        """Raises if a module must not be imported."""
        top = name.partition(".")[0] if isinstance(name, str) else ""
        grant = _REFUSED_MODULES.get(top)
        if grant and not self._permissive and not self._has(name, top, grant):
            self._refuse(f"import {name}", grant)

    def _has(self, name: str, top: str, grant: str) -> bool:
        if top in self._granted or grant in self._granted:
            return True
        return any(name == one or name.startswith(f"{one}.") for one in self._granted)

    def _guard(self, found):
        """What code gets for the name of a builtin: the builtin, or something that refuses."""
        if self._permissive:
            return found
        for name, real in _real.items():
            if found is real and name not in self._granted:
                return self._importer if name == _IMPORT else self._refused(name)
        return found

    def _refused(self, name: str):
        def refused(*_arguments, **_options):
            self._refuse(f"{name}()", name)

        refused.__name__ = refused.__qualname__ = name
        return refused

    def _importer(self, name, globals=None, locals=None, fromlist=(), level=0):
        if level == 0:
            self._check(name)
        return _real[_IMPORT](name, globals, locals, fromlist, level)

    def _refuse(self, what: str, grant: str):
        self._link.denied(what)
        raise Refusal(what, grant)


def needs_guard(source: str) -> bool:
    """Whether anything in a source may have to be rewritten. Letters outside of ASCII may be another
    spelling of a name."""
    return not source.isascii() or _mentions(source) is not None


def guard(tree) -> None:
    """Rewrites guest code, so that it asks before it uses what restricted mode refuses."""
    names = set(_real) - _bound_names(tree)
    try:
        _Guard(names).visit(tree)
    except RecursionError:
        # Code that is nested so deeply is generated. What was not reached is not advised about.
        pass


class _Guard(ast.NodeTransformer):
    def __init__(self, names):
        self._names = names

    def visit_Name(self, node):
        if node.id not in self._names or not isinstance(node.ctx, ast.Load):
            return node
        return _call(GUARD, node, node)

    def visit_Import(self, node):
        return self._checked(node, [alias.name for alias in node.names])

    def visit_ImportFrom(self, node):
        return self._checked(node, [node.module] if node.module and not node.level else [])

    def _checked(self, node, modules):
        refused = [name for name in modules if name.partition(".")[0] in _REFUSED_MODULES]
        checks = [
            ast.copy_location(ast.Expr(_call(CHECK, ast.Constant(name), node)), node)
            for name in refused
        ]
        return [*checks, node] if checks else node


def _call(function: str, argument, node):
    """A call of one of ours, at the place of a node."""
    call = ast.Call(ast.Name(function, ast.Load()), [argument], [])
    for part in (call, call.func, argument):
        ast.copy_location(part, node)
    return call


def _bound_names(tree) -> set:
    """The guarded names that the code itself gives a meaning: those are its own."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name)
    return names


class _Loader(importlib.machinery.SourceFileLoader):
    """Compiles a module of the agent's as guest code."""

    def source_to_code(self, data, path, *, _optimize=-1):
        if not needs_guard(bytes(data).decode("utf-8", "replace")):
            return super().source_to_code(data, path, _optimize=_optimize)
        tree = compile(data, path, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
        guard(tree)
        return compile(tree, path, "exec", dont_inherit=True, optimize=_optimize)


class _Finder(importlib.machinery.FileFinder):
    """Reads the directory each time: a new file may leave the modification time of its directory
    unchanged, so a caching finder would miss it."""

    def find_spec(self, fullname, target=None):
        self.invalidate_caches()
        return super().find_spec(fullname, target)


def import_from_workspace(work: str) -> None:
    """Lets guest code import modules it wrote, under the same rules."""
    if type(sys.path_importer_cache.get(work)) is not _Finder:
        sources = (_Loader, importlib.machinery.SOURCE_SUFFIXES)
        native = (importlib.machinery.ExtensionFileLoader, importlib.machinery.EXTENSION_SUFFIXES)
        sys.path_importer_cache[work] = _Finder(work, native, sources)
    if sys.path[:1] != [work]:
        sys.path[:] = [work] + [path for path in sys.path if path not in ("", ".", work)]
