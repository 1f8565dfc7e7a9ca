"""Delays the after-fork hooks of modules until code runs that may fork.

A cell is a copy of its zygote, and a branch of a session is a copy of its guest. Both are made
while the only thread holds none of the locks that these hooks would reset. Running the hooks would
touch a few hundred pages, which would then belong to the copy alone. Hooks of other modules run as
usual, because their purpose is unknown here. Random number generators are seeded anew in every
copy.
"""

import os
import sys
from _random import Random
from _thread import get_ident

# Their hooks reset locks and forget threads that do not exist in the copy.
_MENDERS = ("threading", "logging", "concurrent.futures.thread", "random", f"{__package__}.run")
_register = os.register_at_fork
_before = []
_in_parent = []
_in_child = []
# Random number generators that have an after-fork hook.
_generators = []
_are_granted = False
# The thread that forks, while it forks.
_branching = None


def keep() -> None:
    """In the zygote: from here on the hooks of those modules wait until `grant`."""
    os.register_at_fork = _keep
    _register(before=_do_before, after_in_parent=_do_in_parent, after_in_child=_do_in_child)


def grant() -> None:
    """In a cell: from here on the hooks run as usual."""
    global _are_granted
    os.register_at_fork = _register
    _are_granted = True


def suspend() -> None:
    """This thread is about to fork; `resume` follows."""
    global _branching
    _branching = get_ident()


def resume() -> None:
    """The fork is over, in the parent and in the copy."""
    global _branching
    _branching = None


def reseed() -> None:
    """In a copy: without this all copies would draw the same numbers."""
    for generator in _generators:
        Random.seed(generator)
        if generator.gauss_next is not None:
            generator.gauss_next = None
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()


def _keep(*, before=None, after_in_child=None, after_in_parent=None) -> None:
    if sys._getframe(1).f_globals.get("__name__") not in _MENDERS:
        wishes = {
            "before": before, "after_in_child": after_in_child, "after_in_parent": after_in_parent
        }
        _register(**{name: wish for name, wish in wishes.items() if wish is not None})
        return
    wishes = ((_before, before), (_in_parent, after_in_parent), (_in_child, after_in_child))
    for kept, wish in wishes:
        if wish is not None:
            kept.append(wish)
    generator = getattr(after_in_child, "__self__", None)
    if isinstance(generator, Random):
        _generators.append(generator)


def _are_wanted() -> bool:
    return _are_granted and _branching != get_ident()


def _do_before() -> None:
    if _are_wanted():
        _do(reversed(_before))


def _do_in_parent() -> None:
    if _are_wanted():
        _do(_in_parent)


def _do_in_child() -> None:
    if _are_wanted():
        _do(_in_child)


def _do(wishes) -> None:
    for wish in wishes:
        try:
            wish()
        except BaseException:  # Python prints it and runs the next
            sys.excepthook(*sys.exc_info())
