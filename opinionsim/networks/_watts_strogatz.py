"""The small world of Watts and Strogatz."""

from __future__ import annotations

from typing import Any

import numpy as np

from opinionsim.networks._kind import Probability
from opinionsim.networks._pairs import Pairs, run_kernel
from opinionsim.networks._ring import Even, RingNetwork
from opinionsim.registry import part


@part("network", name="watts-strogatz")
class WattsStrogatzNetwork(RingNetwork):
    """A small world: a ring whose edges are rewired with probability p.

    The first end of an edge stays; the other moves to a uniformly drawn agent that the first is not connected to. An
    agent that is connected to everybody keeps its edge (Watts and Strogatz 1998, doi:10.1038/30918).
    """

    k: Even
    """Number of nearest neighbours on the ring. It must be even and at most N."""
    p: Probability
    """Probability that an edge is rewired."""

    def pairs(self, size: int, rng: np.random.Generator) -> Pairs:
        """Return the edges of the ring, lap by lap, with some second ends redrawn."""
        u, v = super().pairs(size, rng)
        half = self.k // 2
        if self.p > 0 and self.k < size - 1:
            ends = v.reshape(half, size).copy()
            run_kernel(_rewire, len(u), size, half, self.p, rng, ends, np.ones((half, size), dtype=np.bool_))
            v = ends.ravel()
        return u, v


def _rewire(n: int, half: int, p: float, rng: Any, ends: Any, kept: Any) -> None:
    """Rewire the edge from u to the agent `ends[lap, u]`, lap by lap; `kept` marks edges not yet rewired."""
    degrees = np.full(n, 2 * half)
    taken = {np.int64(-1)}
    for lap in range(half):
        for u in range(n):
            if rng.random() >= p or degrees[u] >= n - 1:
                continue
            while True:
                w = int(rng.random() * n)
                ahead = (w - u) % n
                if ahead == 0 or (ahead <= half and kept[ahead - 1, u]):
                    continue
                if n - ahead <= half and kept[n - ahead - 1, w]:
                    continue
                code = np.int64(min(u, w)) * n + max(u, w)
                if code not in taken:
                    break
            taken.add(code)
            degrees[ends[lap, u]] -= 1
            degrees[w] += 1
            kept[lap, u] = False
            ends[lap, u] = w
