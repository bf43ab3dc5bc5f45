"""The ring network."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from opinionsim.networks._graph_reading import MAX_AGENTS
from opinionsim.networks._kind import NetworkKind
from opinionsim.networks._pairs import Pairs
from opinionsim.registry import part

Even = Annotated[int, Field(ge=2, le=MAX_AGENTS, multiple_of=2)]


@part("network", name="ring")
class RingNetwork(NetworkKind):
    """A circle in which each agent is connected with its k nearest neighbours, half of them on either side."""

    k: Even = 2
    """Number of nearest neighbours of each agent. It must be even and at most N; with N, all agents are connected."""

    def problem(self, size: int) -> str:
        """Return the problem if k is above `size`."""
        return f"k must be at most N = {size}; got {self.k}" if self.k > size else ""

    def pairs(self, size: int, rng: np.random.Generator) -> Pairs:
        """Pair each agent with those ahead of it, lap by lap, nearest neighbours first."""
        agents = np.arange(size, dtype=np.int64)
        starts, ends = [], []
        for distance in range(1, self.k // 2 + 1):
            # Half the circle away, both ends would name the same edge.
            near = agents[: size // 2] if 2 * distance == size else agents
            starts.append(near)
            ends.append((near + distance) % size)
        return np.concatenate(starts), np.concatenate(ends)
