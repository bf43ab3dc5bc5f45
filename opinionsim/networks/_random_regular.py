"""The random network of equal degrees."""

from __future__ import annotations

import numpy as np

from opinionsim.networks._degrees import pairs_of_degrees
from opinionsim.networks._kind import NetworkKind, Positive
from opinionsim.networks._pairs import Pairs
from opinionsim.registry import part


@part("network", name="random-regular")
class RandomRegularNetwork(NetworkKind):
    """Every agent has d neighbours; drawn like `configuration`."""

    d: Positive
    """Number of neighbours of each agent, below N. N times d must be even."""

    def problem(self, size: int) -> str:
        """Return the problem if d is not below `size`, or if the sum of degrees is odd."""
        if self.d >= size:
            return f"d must be below N = {size}; got {self.d}"
        return f"N times d must be even; got N = {size} times {self.d}" if self.d * size % 2 else ""

    def pairs(self, size: int, rng: np.random.Generator) -> Pairs:
        """Return randomly paired agents."""
        return pairs_of_degrees(np.full(size, self.d, dtype=np.int64), rng)
