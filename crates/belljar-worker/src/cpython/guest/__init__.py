"""The guest side of Python in a cell: warmed once in the zygote, used once in each cell.

Two entry points: `warm(data)` in the zygote, `cell_main(fd, lower_limits)` in a cell.
"""

from .cell import cell_main, rehearse
from .warm import warm

__all__ = ["cell_main", "rehearse", "warm"]
