"""The line network."""

from __future__ import annotations

import numpy as np

from opinionsim.networks._kind import NetworkKind
from opinionsim.networks._pairs import Pairs
from opinionsim.registry import part


@part("network", name="path")
class PathNetwork(NetworkKind):
    """An open line in which each agent is connected with the next."""

    def pairs(self, size: int, rng: np.random.Generator) -> Pairs:
        """Pair each agent except the last with the next."""
        agents = np.arange(size, dtype=np.int64)
        return agents[:-1], agents[1:]
