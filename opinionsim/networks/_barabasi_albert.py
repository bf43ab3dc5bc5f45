"""The growing network of Barabási and Albert."""

from __future__ import annotations

from typing import Any

import numpy as np

from opinionsim.networks._kind import NetworkKind, Positive
from opinionsim.networks._pairs import Pairs, run_kernel
from opinionsim.registry import part


@part("network", name="barabasi-albert")
class BarabasiAlbertNetwork(NetworkKind):
    """Growth by preferential attachment: m (N - m) edges.

    The network starts as a star of m + 1 agents. Each further agent adds edges to m different agents, which are drawn
    one after another in proportion to their degrees; an agent that is drawn twice is drawn again (Barabási and Albert
    1999, doi:10.1126/science.286.5439.509).
    """

    m: Positive
    """Number of edges that each new agent adds, below N."""

    def problem(self, size: int) -> str:
        """Return the problem if there are no more than m agents."""
        return f"m must be below N = {size}; got {self.m}" if self.m >= size else ""

    def pairs(self, size: int, rng: np.random.Generator) -> Pairs:
        """Return the edges in the order in which they are added."""
        ends = np.zeros(2 * self.m * (size - self.m), dtype=np.uint32)
        run_kernel(_attach, len(ends), size, self.m, rng, ends, np.zeros(size, dtype=np.uint32))
        return ends[0::2], ends[1::2]


def _attach(n: int, m: int, rng: Any, ends: Any, joined: Any) -> None:
    """Write the ends of all edges, two an edge; `joined` holds the last agent that joined each agent."""
    for leaf in range(1, m + 1):
        ends[2 * leaf - 1] = leaf
    count = 2 * m
    for agent in range(m + 1, n):
        present = count
        while count < present + 2 * m:
            # An agent is among the ends as often as it has edges, so this draw is in proportion to degree.
            other = ends[int(rng.random() * present)]
            if joined[other] != agent:
                joined[other] = agent
                ends[count] = agent
                ends[count + 1] = other
                count += 2
