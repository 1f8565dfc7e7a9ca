"""The guest side of Python in a cell: warmed once in the zygote, used once in each cell.

Entry points: `warm(data)` and `warm_further()` in the zygote, before and after its first cell, and
`cell_main(fd, lower_limits)` in a cell.
"""

from .cell import cell_main, rehearse
from .warm import warm, warm_further

__all__ = ["cell_main", "rehearse", "warm", "warm_further"]
