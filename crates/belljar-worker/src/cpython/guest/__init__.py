"""The guest side of Python in a cell: warmed once in the zygote, used once in each cell.

Entry points: `zygote.main`; or, one by one, `warm.warm` and `warm.warm_further` in the zygote, before
and after its first cell, and `cell.cell_main` in a cell.
"""
