"""The builtins of guest code: Python's own, and a few names beside them (A2, A11).

There is one table, that of the module `builtins`: what code puts there is what it finds there, and what
`unittest.mock` puts there every library finds too. So the table is put right again when a run has
failed, before it is told, and between the runs of a session.
"""

import builtins

from .helpers import make_helpers
from .program import SETTLE, STAR_IMPORT, star_import
from .restrict import Rules
from .toolcall import settle


class BuiltinNames:
    """The table, for one run after the other."""

    def __init__(self, link):
        self.table = vars(builtins)
        self._link = link
        self._rules = Rules(link)
        self._python = {}
        # The names beside them that all runs of a workspace have in common, and which one that is.
        self._helpers = {}
        self._made_for = None
        self._of_run = frozenset()

    def remember(self) -> None:
        """In the zygote: what Python and its libraries have put there is what belongs there."""
        own = self._helpers.keys() | self._of_run
        self._python = {name: value for name, value in self.table.items() if name not in own}

    def begin(self, grants: dict, work: str, names: dict) -> None:
        """A run begins. `names` are its own; what was made for an earlier run of the same workspace,
        or for a rehearsal, holds for this one too: to make it again is to touch whatever it holds."""
        self._rules.set(grants)
        if work != self._made_for:
            own = make_helpers(self._link, work)
            own[STAR_IMPORT] = star_import(self.table["__import__"])
            own[SETTLE] = settle
            own.update(self._rules.names())
            self.table.update(own)
            self._helpers, self._made_for = own, work
        self.table.update(names)
        if not self._of_run:
            self._of_run = frozenset(names)

    def restore(self) -> None:
        """Puts back whatever code has put in the place of what belongs there."""
        self.table.update(self._python)
        self.table.update(self._helpers)
