"""The network with one agent in the middle."""

from __future__ import annotations

import numpy as np

from opinionsim.networks._kind import NetworkKind
from opinionsim.networks._pairs import Pairs
from opinionsim.registry import part


@part("network", name="star")
class StarNetwork(NetworkKind):
    """Agent 0 is connected with every other agent."""

    def pairs(self, size: int, rng: np.random.Generator) -> Pairs:
        """Pair agent 0 with each other agent."""
        others = np.arange(1, size, dtype=np.int64)
        return np.zeros_like(others), others
