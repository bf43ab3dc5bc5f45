"""The complete network."""

from __future__ import annotations

import numpy as np

from opinionsim.networks._kind import NetworkKind
from opinionsim.registry import part


@part("network", name="complete")
class CompleteNetwork(NetworkKind):
    """Every agent is connected with every other; no pairs are stored."""

    def pairs(self, size: int, rng: np.random.Generator) -> int:
        """Return the number of agents, which means all pairs of them."""
        return size
