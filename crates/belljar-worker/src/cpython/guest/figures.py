"""Open matplotlib figures at the end of a run: saved, and handed over as artifacts."""

import os
import sys

# A model is shown pictures up to this size; of a larger figure there is a smaller copy for it.
LONGEST_SIDE = 1568
_PLOTTING = ("matplotlib", "mpl_toolkits", "seaborn")


def save_all(work: str, before: int = 0):
    """Saves each open figure as `out/figure-N.png` below the workspace; gives the paths. Numbering
    continues after the figures of earlier runs."""
    pyplot = _pyplot()
    if pyplot is None:
        return []
    paths = []
    for number in pyplot.get_fignums():
        path = os.path.join(work, "out", f"figure-{before + number}.png")
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            figure = pyplot.figure(number)
            figure.savefig(path)
            small = _save_small(figure, path)
        except Exception as error:  # a figure less must not lose the value
            sys.stderr.write(f"figure {number} could not be saved: {error}\n")
        else:
            paths.extend([small, path] if small else [path])
    pyplot.close("all")
    return paths


def _save_small(figure, path: str):
    dpi = _dpi(figure)
    side = max(figure.get_size_inches()) * dpi
    if side <= LONGEST_SIDE:
        return None
    small = path.removesuffix(".png") + "-small.png"
    figure.savefig(small, dpi=dpi * LONGEST_SIDE / side)
    return small


def _dpi(figure) -> float:
    """The resolution that `savefig` uses."""
    configured = sys.modules["matplotlib"].rcParams["savefig.dpi"]
    return figure.dpi if configured == "figure" else configured


def close_all() -> None:
    """Closes the figures that a failed run has left open."""
    pyplot = _pyplot()
    if pyplot is not None:
        pyplot.close("all")


def _pyplot():
    pyplot = sys.modules.get("matplotlib.pyplot")
    return pyplot if hasattr(pyplot, "get_fignums") else None


def is_artist(value) -> bool:
    """Whether this is the return value of a plotting call, which is not the value of the run."""
    if "matplotlib" not in sys.modules:
        return False
    items = value if isinstance(value, (list, tuple)) and value else [value]
    return all(type(item).__module__.partition(".")[0] in _PLOTTING for item in items)
