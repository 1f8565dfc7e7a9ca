"""The guest side of Python in a cell: warmed once in the zygote, used once in each cell.

Entry points: `zygote.main`; or, one by one, `warm.warm` and `warm.warm_further` in the zygote, before
and after its first cell, and `cell.cell_main` in a cell. Guest code may put anything in the place of
Python's builtins, and the modules of this package go on regardless: they have a copy.
"""

import builtins
import importlib.machinery
import sys

_COPY = dict(vars(builtins))


class _Loader(importlib.machinery.SourceFileLoader):
    def exec_module(self, module):
        module.__dict__["__builtins__"] = _COPY
        super().exec_module(module)


class _Finder:
    """Finds the modules of this package."""

    @staticmethod
    def find_spec(fullname, path=None, target=None):
        if not fullname.startswith(f"{__name__}."):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None:
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


sys.meta_path.insert(0, _Finder)
