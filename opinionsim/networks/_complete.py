"""The complete network."""

from __future__ import annotations

import numpy as np

from opinionsim.networks._kind import NetworkKind
from opinionsim.registry import part


@part("network", name="complete")
class CompleteNetwork(NetworkKind):
    """Every agent is connected with every other; no pairs are stored."""

    def pairs(self, size: int, rng: np.random.Generator) -> int:
        """The number of agents, which stands for all pairs of them."""
        return size
