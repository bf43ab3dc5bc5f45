"""The random network of Erdős, Rényi and Gilbert."""

from __future__ import annotations

import numpy as np
from pydantic import Field, model_validator

from opinionsim.networks._kind import NetworkKind
from opinionsim.networks._pairs import Pairs, bernoulli, triangle
from opinionsim.registry import part


@part("network", name="erdos-renyi")
class ErdosRenyiNetwork(NetworkKind):
    """Each pair with probability p = mean_degree / (N - 1), independently."""

    p: float | None = Field(None, gt=0, le=1)
    """Probability of each edge. Give either this or `mean_degree`."""
    mean_degree: float | None = Field(None, gt=0)
    """Expected number of neighbours, at most N - 1."""

    @model_validator(mode="after")
    def _one_density(self) -> ErdosRenyiNetwork:
        if (self.p is None) == (self.mean_degree is None):
            raise ValueError("set either p (a probability, > 0) or mean_degree (expected neighbours, > 0)")
        return self

    def problem(self, size: int) -> str:
        """Return the problem if mean_degree is above N - 1."""
        if self.mean_degree is None or self.mean_degree <= size - 1:
            return ""
        return f"mean_degree must be at most N - 1, with N = {size}; got {self.mean_degree:g}"

    def pairs(self, size: int, rng: np.random.Generator) -> Pairs:
        """The pairs drawn."""
        p = self.p if self.p is not None else (self.mean_degree or 0) / (size - 1)
        return triangle(bernoulli(size * (size - 1) // 2, p, rng))
