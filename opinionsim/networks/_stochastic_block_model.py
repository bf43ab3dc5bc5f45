"""The stochastic block model."""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import Annotated

import numpy as np
from pydantic import Field, model_validator

from opinionsim.networks._graph_reading import MAX_AGENTS
from opinionsim.networks._kind import Natural, NetworkKind, Probability
from opinionsim.networks._pairs import Pairs, bernoulli, triangle
from opinionsim.registry import part

_Share = Annotated[float, Field(gt=0, le=MAX_AGENTS)]


@part("network", name="stochastic-block-model")
class StochasticBlockModelNetwork(NetworkKind):
    """Blocks of agents, numbered block by block; the blocks of a pair determine its probability of being connected.

    Holland et al. 1983, doi:10.1016/0378-8733(83)90021-7.
    """

    sizes: Annotated[tuple[Natural, ...], Field(min_length=1)] | None = None
    """Number of agents in each block, with sum N. Give either this or `shares`."""
    shares: Annotated[tuple[_Share, ...], Field(min_length=1)] | None = None
    """Share of each block, with any sum. Agents left over by rounding go to the blocks with the largest remainders."""
    p_within: Probability | None = None
    """Probability of an edge within a block."""
    p_between: Probability | None = None
    """Probability of an edge between two blocks."""
    p: tuple[tuple[Probability, ...], ...] | None = None
    """Symmetric matrix with a probability for each pair of blocks, instead of `p_within` and `p_between`."""

    @model_validator(mode="after")
    def _one_form(self) -> StochasticBlockModelNetwork:
        if (self.sizes is None) == (self.shares is None):
            raise ValueError("set either sizes (agents in each block) or shares (with any sum)")
        given = self.p_within is not None, self.p_between is not None
        if given != ((self.p is None),) * 2:
            raise ValueError("set either p (a matrix) or both p_within and p_between (probabilities)")
        count = len(self.sizes or self.shares or ())
        if self.p is not None:
            columns = {len(row) for row in self.p}
            if len(self.p) != count or columns != {count} or tuple(zip(*self.p, strict=True)) != self.p:
                raise ValueError(f"p must be a symmetric matrix with a row and a column for each of {count} blocks")
        return self

    def problem(self, size: int) -> str:
        """Return the problem if the sizes of blocks do not sum to `size`."""
        if self.sizes is None or sum(self.sizes) == size:
            return ""
        return f"sizes must sum to N = {size}; the sum is {sum(self.sizes)}"

    def pairs(self, size: int, rng: np.random.Generator) -> Pairs:
        """Draw pairs for each two blocks in turn."""
        blocks = self.blocks(size)
        starts = np.concatenate([[0], np.cumsum(blocks)])
        found = []
        for a, b in combinations_with_replacement(range(len(blocks)), 2):
            size_a, size_b = int(blocks[a]), int(blocks[b])
            p = self.p[a][b] if self.p else (self.p_within if a == b else self.p_between) or 0.0
            if a == b:
                u, v = triangle(bernoulli(size_a * (size_a - 1) // 2, p, rng))
            else:
                u, v = np.divmod(bernoulli(size_a * size_b, p, rng), max(size_b, 1))
            found.append((u + starts[a], v + starts[b]))
        return np.concatenate([u for u, _ in found]), np.concatenate([v for _, v in found])

    def blocks(self, size: int) -> np.ndarray:
        """Return the number of agents in each block; they sum to `size`."""
        if self.sizes is not None:
            return np.asarray(self.sizes)
        parts = np.asarray(self.shares)
        exact = size * (parts / parts.sum())
        whole: np.ndarray = np.floor(exact).astype(np.int64)
        whole[np.argsort(whole - exact, kind="stable")[: size - int(whole.sum())]] += 1
        return whole
