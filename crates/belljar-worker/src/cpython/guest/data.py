"""The global `data` (A11): a small library for lists, tables, numbers and dates, the same one that
TypeScript has, under both spellings of its names. Its parts are loaded when it is first used: their
text is read in the zygote, since a run's cell cannot read it any more, and few runs need it compiled."""

import calendar  # noqa: F401 - these are found before guest code can have one of that name
import email.utils  # noqa: F401
import importlib.machinery
import importlib.util
import os
import re
import sys
import unicodedata  # noqa: F401

# Each after those it imports.
_PARTS = ("data_items", "data_numbers", "data_tables", "data_text", "data_dates")
_capitals = re.compile("[A-Z]").sub


class Data:
    """Finds a function of the library by its name: `group_by` or `groupBy`."""

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        self.__dict__.update(load())
        try:
            return self.__dict__[name]
        except KeyError:
            known = ", ".join(sorted(one for one in self.__dict__ if one.islower()))
            raise AttributeError(f"data has no {name!r}; it has: {known}") from None

    def __dir__(self):
        return sorted(load())

    def __repr__(self) -> str:
        return "<data: functions for lists, tables, numbers and dates; see dir(data)>"


class _SourceLoader(importlib.machinery.SourceFileLoader):
    """Loads a part from the text that was read when this module was imported."""

    def __init__(self, name: str):
        super().__init__(
            f"{__package__}.{name}", os.path.join(os.path.dirname(__file__), f"{name}.py")
        )
        with open(self.path, "rb") as file:
            self._source = file.read()

    def path_stats(self, path):
        raise OSError(f"there is no compiled {path}")

    def get_data(self, path):
        if path != self.path:
            raise OSError(f"{path} is not part of the library")
        return self._source


_loaders = [_SourceLoader(name) for name in _PARTS]


def load() -> dict:
    """The functions, by both of their names."""
    found = {}
    for part in [_module(loader) for loader in _loaders]:
        for name, function in part.FUNCTIONS.items():
            found[name] = function
            found[_capitals(lambda capital: f"_{capital[0].lower()}", name)] = function
    found["summarize"] = found["summarise"]
    return found


def _module(loader: _SourceLoader):
    there = sys.modules.get(loader.name)
    if there is not None:
        return there
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    sys.modules[loader.name] = module
    try:
        loader.exec_module(module)
    except BaseException:  # a library loaded by half is not kept
        sys.modules.pop(loader.name, None)
        raise
    return module
