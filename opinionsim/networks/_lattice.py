"""The grid network."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from opinionsim.networks._kind import NetworkKind, Positive
from opinionsim.networks._pairs import Pairs, codes
from opinionsim.registry import part


@part("network", name="lattice")
class LatticeNetwork(NetworkKind):
    """A rectangular grid, filled row by row."""

    sides: tuple[Positive, Positive] | None = None
    """Number of rows and columns, whose product must be N. Null makes the grid as square as possible, which is a line
    if N is prime."""
    periodic: bool = True
    """Whether opposite borders are connected. A side of one or two agents creates no loops or repeated edges."""
    neighbours: Literal[4, 8] = 4
    """4 for neighbours to the left, right, above and below (von Neumann), or 8 to include the diagonals (Moore)."""

    def problem(self, size: int) -> str:
        """Return the problem if the product of the sides is not `size`."""
        if self.sides is None or math.prod(self.sides) == size:
            return ""
        rows, columns = self.sides
        return f"the product of the sides must be N = {size}; got {rows} times {columns}"

    def pairs(self, size: int, rng: np.random.Generator) -> Pairs:
        """Pair each agent with those to its right and below it."""
        rows, columns = self.sides or _squarest(size)
        row, column = (axis.ravel() for axis in np.indices((rows, columns)))
        starts, ends = [], []
        for down, right in ((0, 1), (1, 0), (1, 1), (1, -1))[: self.neighbours // 2]:
            there = row + down, column + right
            inside = (there[0] < rows) & (there[1] < columns) & (there[1] >= 0)
            reached = there[0] % rows * columns + there[1] % columns
            kept = np.ones(size, dtype=bool) if self.periodic else inside
            starts.append(np.flatnonzero(kept))
            ends.append(reached[kept])
        u, v = np.concatenate(starts), np.concatenate(ends)
        if self.periodic and min(rows, columns) <= 2:
            u, v = np.divmod(np.unique(codes(size, u, v)), size)
            u, v = u[u != v], v[u != v]
        return u, v


def _squarest(size: int) -> tuple[int, int]:
    rows = next(rows for rows in range(math.isqrt(size), 0, -1) if size % rows == 0)
    return rows, size // rows
