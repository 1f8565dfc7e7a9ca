"""Lines that only a notebook has a use for: `%matplotlib inline`, `!pip install pandas` (A2).

They are no Python. Those that ask for what a cell does anyway are left out; of the others the error says
what to do instead.
"""

import re

_MAGIC = re.compile(r"^(\s*)([%!]{1,2})\s*(\S*)(.*)$")
# A cell does already what these arrange for, or it does not matter.
_HARMLESS = frozenset(("matplotlib", "config", "load_ext", "reload_ext", "autoreload", "time", "precision"))
_SHELL = (
    "A shell line is for notebooks. Do it in Python, or send it as a run of its own with language bash."
)
_INSTALLERS = ("pip", "pip3", "conda", "mamba", "uv")


def without_magic(code: str):
    """The code without such lines, and a note for each that asked for something; None for the code if
    there is no such line, or one that cannot be left out."""
    lines, notes, are_any = [], [], False
    for line in code.splitlines():
        magic = _MAGIC.match(line)
        if magic is None:
            lines.append(line)
            continue
        note = _note_on(*magic.group(2, 3, 4))
        if note is None:
            return None, []
        are_any = True
        notes.extend([note] if note else [])
        # An empty line would end a block too early.
        lines.append(f"{magic.group(1)}pass" if magic.group(1) else "")
    return ("\n".join(lines), notes) if are_any else (None, [])


def _note_on(sign: str, name: str, rest: str):
    """What the log says of a line that can be left out; None if it cannot be."""
    if sign == "%" and name in _HARMLESS and not (name == "time" and rest.strip()):
        return ""
    if sign == "%%" and name in ("time", "capture"):
        return ""
    packages = _packages(name, rest)
    if packages and all(_is_installed(package) for package in packages):
        return f"[install] nothing to do: {', '.join(packages)} is installed"
    return None


def hint_for(line: str):
    """What to do about a line that is no Python, None if it is not of this kind."""
    magic = _MAGIC.match(line)
    if magic is None:
        return _other_hint(line)
    sign, name, rest = magic.group(2, 3, 4)
    packages = _packages(name, rest)
    if packages is not None:
        missing = ", ".join(package for package in packages if not _is_installed(package))
        what = f" ({missing} is not installed here)" if missing else ""
        return f"Nothing can be installed during a run{what}. Leave the line out, and use what is there."
    if "!" in sign or sign == "%%" and name in ("bash", "sh"):
        return _SHELL
    return f"%{name} is for notebooks, not Python: leave the line out."


def _other_hint(line: str):
    """The same for lines with something of a notebook in another place."""
    if re.match(r"^\s*[\w, ]+=\s*!\s*\w", line):
        return _SHELL
    if re.match(r"^\s*\?{1,2}[\w.]+\s*$|^\s*[\w.]+\?{1,2}\s*$", line):
        return "? is for notebooks, not Python: use help(name)."
    return None


def _packages(name: str, rest: str):
    """The packages that a line installs, None if it installs nothing."""
    words = rest.replace('"', "").replace("'", "").split()
    if name not in _INSTALLERS or "install" not in words[:2]:
        return None
    named = [word for word in words[words.index("install") + 1 :] if not word.startswith("-")]
    return [re.split(r"[\[<>=!~;]", word)[0] for word in named]


def _is_installed(package: str) -> bool:
    import importlib.metadata

    try:
        importlib.metadata.version(package)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return False
    return True
