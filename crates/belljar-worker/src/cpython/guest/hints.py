"""Hints: what an agent can do about an error (A7)."""

import ast
import difflib
import errno
import linecache
import os
import sys

from . import notebook, procfs, trace


class Hint(str):
    """A hint, and the grant that would help, as its kind and name. How to ask for a grant is different
    for each reader, so the host adds it."""

    def __new__(cls, text: str, kind: str, name: str):
        hint = super().__new__(cls, text)
        hint.grant = kind, name
        return hint


MEMORY = (
    "Work on smaller pieces, and keep only what is needed for the result instead of copies of the "
    "data."
)
STACK_OVERFLOW = (
    "Look for a recursion that does not end; for deep data use a loop with an explicit stack."
)
TIMEOUT_RUNNING = (
    "The code was still running there: look for a loop that does not end, or do less per run."
)
TIMEOUT_WAITING = "The code was waiting there: wait for less time."
ALARM = "Set a handler with signal.signal(signal.SIGALRM, handler), or leave it to the run's own limit."
DISK = "Workspace and /tmp are full: write less, or delete files that are no longer needed."
OPEN_FILES = "Close files that are no longer needed: `with open(...) as file`."
NETWORK = (
    "This run can reach granted hosts only. Use `fetch` for them, pass data in with `context`, or call a tool."
)
PROCESS_LOCKS = (
    "Processes cannot share locks in a cell. Use concurrent.futures.ThreadPoolExecutor, or "
    "ProcessPoolExecutor, which runs in threads here."
)
HOST = "The sandbox does not allow this. Use plain computation and files in /work and /tmp."

_POPULAR = (
    "numpy", "pandas", "matplotlib", "scipy", "sklearn", "PIL", "yaml", "requests", "httpx", "bs4",
    "lxml", "openpyxl", "pydantic", "dateutil", "pytz", "tabulate", "seaborn", "sympy", "networkx",
    "pyarrow", "polars", "jinja2", "tqdm",
)  # fmt: skip
_NETWORKING = ("requests", "httpx", "aiohttp", "urllib3", "websockets", "boto3", "openai")
_OTHER_LANGUAGES = {
    "null": "None", "undefined": "None", "nil": "None", "true": "True", "false": "False",
    "console": "print", "NaN": "float('nan')", "Infinity": "float('inf')", "require": "import",
}  # fmt: skip


def network(host):
    """The hint for code that tried to reach a host, if its name is known, and the grant that would help."""
    return Hint(NETWORK, "net", host) if host else NETWORK


def line_text(place):
    """The source line of a place, without its indentation."""
    return linecache.getline(place.file_name, place.line).strip()


def processes(limits: dict) -> str:
    return (
        f"At most {limits.get('processes')} processes and threads at a time: use a pool with fewer "
        "workers, or join the finished ones."
    )


def command(error: OSError) -> str:
    """A command that may not be started."""
    text = "This command is not granted: do it in Python."
    if not isinstance(error.filename, (str, bytes)):
        return text
    return Hint(text, "commands", os.path.basename(os.fsdecode(error.filename)))


def for_syntax(error: SyntaxError):
    """A hint for a message of the compiler."""
    message = str(error.msg)
    of_notebook = notebook.hint_for(str(error.text or ""))
    if of_notebook is not None:
        return of_notebook
    if "'return' outside function" in message or "'yield' outside function" in message:
        return "This works only inside a function: put the code into a function and call it."
    if "inconsistent use of tabs" in message or isinstance(error, IndentationError):
        return "Check the indentation of this line and the one before; use four spaces a level."
    if "was never closed" in message or "unexpected EOF" in message:
        return "The code ends too early: close the bracket or string, or send the rest of it."
    return None


def for_error(error, place, tree, source, granted=()):
    """A hint for an uncaught exception, or None. `granted` are paths of the host."""
    try:
        if isinstance(error, ModuleNotFoundError):
            return _module(error)
        if isinstance(error, NameError):
            return _name(error, place)
        if isinstance(error, AttributeError):
            return _attribute(error)
        if isinstance(error, KeyError):
            return _key(error, place, tree, source)
        if isinstance(error, FileNotFoundError):
            return _file(error, granted)
        if isinstance(error, RuntimeError):
            return _runtime(error)
    except Exception:
        # A hostile object of the agent raised; the error goes out without a hint.
        pass
    return None


def for_file(error: OSError) -> str:
    """A file the cell does not let the code touch."""
    path = os.path.abspath(os.fsdecode(error.filename))
    if _is_below(path, ("/proc", "/sys", "/dev")):
        return f"A cell has no {path}: it would tell of the machine. No grant gives it."
    if error.errno == errno.EROFS or _can_be_read(path):
        return Hint(f"{path} is read-only. Write to /work.", "write", path)
    return Hint(f"{path} may not be read. Use files in /work.", "read", path)


def _can_be_read(path: str) -> bool:
    """Whether the cell lets the code read it; `os.access` does not know of all the cell's rules."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def _module(error):
    name = (error.name or "").partition(".")[0]
    if name in getattr(sys, "stdlib_module_names", ()):
        return f"This Python was built without `{name}`."
    there = ", ".join(found for found in _POPULAR if _is_installed(found))
    there = f"the standard library and {there}" if there else "only the standard library"
    network = " Without granted hosts, a run has no network." if name in _NETWORKING else ""
    return (
        f"`{name}` is not installed here, and nothing can be installed during a run.{network} "
        f"Available: {there}."
    )


def _is_installed(name: str) -> bool:
    import importlib.util

    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError, AttributeError):
        return False


def _name(error, place):
    name = getattr(error, "name", None) or _quoted(str(error))
    if not name:
        return None
    if name in _OTHER_LANGUAGES:
        return f"In Python it is `{_OTHER_LANGUAGES[name]}`."
    if name in getattr(sys, "stdlib_module_names", ()) or name in sys.modules:
        return f"Add `import {name}` first."
    if name in ("np", "pd", "plt"):
        module = {"np": "numpy", "pd": "pandas", "plt": "matplotlib.pyplot"}[name]
        return f"Add `import {module} as {name}` first."
    known = []
    if place is not None and place.frame is not None:
        frame = place.frame
        known = [*frame.f_locals, *frame.f_globals, *frame.f_builtins]
    close = _close(name, known)
    did_you_mean = f"Did you mean {close}? " if close else ""
    return f"{did_you_mean}Define it first, or check its spelling. Input is in `context`."


def _attribute(error):
    message = str(error)
    if "'NoneType' object" in message:
        return "The value before the dot is None: check where it comes from, and that the call returns something."
    if "'coroutine' object" in message:
        return "An `await` is missing before the call."
    name, owner = getattr(error, "name", None), getattr(error, "obj", None)
    if name and owner is not None and "no key" not in message:
        close = _close(name, dir(owner))
        return f"Did you mean {close}?" if close else None
    return None


def _key(error, place, tree, source):
    key = error.args[0] if error.args else None
    if _is_environment(error):
        return Hint("Only granted environment variables are set.", "env", str(key))
    keys = _keys_there(key, place, tree, source)
    if keys is None:
        return "Check for the key first: `key in d`, or d.get(key)."
    if not keys:
        return "It has no keys at all."
    names = ", ".join(repr(one) for one in keys[:20])
    more = f" and {len(keys) - 20} more" if len(keys) > 20 else ""
    close = _close(key, keys) if isinstance(key, str) else None
    did_you_mean = f" Did you mean {close}?" if close else ""
    return f"The keys are: {names}{more}.{did_you_mean}"


def _is_environment(error) -> bool:
    step = error.__traceback__
    last = None
    while step is not None:
        last, step = step.tb_frame, step.tb_next
    return last is not None and last.f_globals.get("__name__") == "os"


def _keys_there(key, place, tree, source):
    """The keys of the object that the line subscripts, read without running code of the object."""
    if place is None or tree is None or place.file_name != source.code_name:
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and node.lineno <= place.line <= node.end_lineno:
            owner = _resolve(node.value, place.frame)
            if isinstance(owner, dict) and not dict.__contains__(owner, key):
                return list(dict.keys(owner))
            columns = getattr(owner, "columns", None)
            if columns is not None and type(owner).__module__.startswith("pandas"):
                return list(columns)
    return None


def _resolve(node, frame):
    if isinstance(node, ast.Name):
        return frame.f_locals.get(node.id, frame.f_globals.get(node.id))
    if isinstance(node, ast.Subscript):
        owner, index = _resolve(node.value, frame), node.slice
        if isinstance(index, ast.Constant):
            index = index.value
        elif isinstance(index, ast.Name):
            index = _resolve(index, frame)
        else:
            return None
        if isinstance(owner, dict):
            return dict.get(owner, index)
        if isinstance(owner, (list, tuple)) and isinstance(index, int):
            return owner[index]
    return None


def is_ungranted(error: OSError, granted) -> bool:
    """Whether the path would be in the cell only with a grant."""
    if not isinstance(error, FileNotFoundError) or not isinstance(error.filename, (str, bytes)):
        return False
    if "subprocess" in trace.modules_passed(error):
        return False
    return not _is_below(os.path.abspath(os.fsdecode(error.filename)), _places(granted))


def _places(granted) -> tuple:
    """The directories in which code can find its own and granted files."""
    return (os.getcwd(), "/work", "/tmp", *granted)


def _is_below(path: str, places) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)


def _granted_at(name: str, granted):
    """The path of a granted file that the code looks for in /work."""
    relative = os.path.relpath(os.path.abspath(name), os.getcwd())
    for path in granted:
        found = os.path.join(os.path.dirname(path), relative)
        if not relative.startswith("..") and _is_below(found, (path,)):
            return found
    return None


def _file(error, granted):
    if not isinstance(error.filename, (str, bytes)):
        return None
    name = os.fsdecode(error.filename)
    if "subprocess" in trace.modules_passed(error):
        name = os.path.basename(name)
        return Hint(f"The command `{name}` is not available. Do it in Python.", "commands", name)
    path = os.path.abspath(name)
    if not _is_below(path, _places(granted)):
        return Hint("Only /work, /tmp and granted paths exist here.", "read", path)
    found = _granted_at(name, granted)
    if found is not None:
        return f"It is granted under its host path: {found}"
    if _is_below(path, ("/tmp",)):
        text = f"{_what_is_there(path, error)} /tmp belongs to this run, not to the host."
        return Hint(text, "read", path)
    return _what_is_there(path, error)


def _what_is_there(path: str, error) -> str:
    """Of a path that does not exist: what there is, as far as the path leads."""
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        if _is_for_writing(error):
            make = f"make it with os.makedirs({folder!r}, exist_ok=True)"
            return f"The folder {folder} does not exist; {make}."
        missing = folder
        while not os.path.isdir(os.path.dirname(missing)):
            missing = os.path.dirname(missing)
        return f"The folder {missing} does not exist. {_listing(os.path.dirname(missing), missing)}"
    return _listing(folder, path)


def _listing(folder: str, path: str) -> str:
    there = sorted(os.listdir(folder))
    if not there:
        return f"{folder} is empty. Files of the machine are seen when they are granted."
    more = f" and {len(there) - 20} more" if len(there) > 20 else ""
    close = _close(os.path.basename(path), there)
    did_you_mean = f" Did you mean {close}?" if close else ""
    return f"Files in {folder}: {', '.join(there[:20])}{more}.{did_you_mean}"


def _is_for_writing(error) -> bool:
    """Whether a file was to be written, as far as `open` was told."""
    mode = ""
    for frame, _, _ in trace.steps(error.__traceback__):
        if frame.f_code is procfs.OPEN_CODE:
            mode = frame.f_locals.get("mode")
    return isinstance(mode, str) and any(sign in mode for sign in "wax+")


def _runtime(error):
    message = str(error)
    if "asyncio.run() cannot be called from a running event loop" in message:
        return "The code already runs in an event loop: write `await main()` at the top level."
    if "dictionary changed size during iteration" in message:
        return "Loop over a copy: for key in list(d)."
    return None


def _quoted(message: str):
    parts = message.split("'")
    return parts[1] if len(parts) > 2 else None


def _close(name: str, known):
    names = [one for one in known if isinstance(one, str) and not one.startswith("__belljar")]
    found = difflib.get_close_matches(name, names, 1, 0.75)
    return f"`{found[0]}`" if found else None
