"""The random network of given degrees."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field, model_validator

from opinionsim.networks._degrees import degrees_problem, pairs_of_degrees
from opinionsim.networks._graph_reading import refuse
from opinionsim.networks._kind import Natural, NetworkKind, Positive
from opinionsim.networks._pairs import Pairs
from opinionsim.registry import part


@part("network", name="configuration")
class ConfigurationNetwork(NetworkKind):
    """Given degrees, or degrees drawn from a power law, connected at random.

    Degrees are exact: no edge is erased.
    """

    degrees: Annotated[tuple[Natural, ...], Field(min_length=1)] | None = None
    """Number of neighbours of each agent, with an even sum. Give either this or `exponent`."""
    exponent: float | None = Field(None, ge=-100, le=100)
    """Degrees are drawn with probabilities proportional to degree^-exponent. One degree is redrawn until the sum is
    even."""
    min_degree: Positive = 1
    """Smallest degree to draw, below N."""
    max_degree: Positive | None = None
    """Largest degree to draw. Null allows N - 1."""

    @model_validator(mode="after")
    def _one_form(self) -> ConfigurationNetwork:
        if (self.degrees is None) == (self.exponent is None):
            raise ValueError("set either degrees (neighbours of each agent) or exponent (of a power law)")
        if self.degrees is not None and (self.min_degree, self.max_degree) != (1, None):
            raise ValueError("min_degree and max_degree have no effect on given degrees; leave them out")
        if self.max_degree is not None and self.max_degree < self.min_degree:
            raise ValueError(f"max_degree must be at least min_degree = {self.min_degree}; got {self.max_degree}")
        return self

    def problem(self, size: int) -> str:
        """Return the problem with given degrees. Drawn degrees are checked later, when they are drawn."""
        if self.degrees is not None:
            if len(self.degrees) != size:
                return f"degrees must contain N = {size} numbers; got {len(self.degrees)}"
            return degrees_problem(np.asarray(self.degrees))
        largest = max(self.min_degree, self.max_degree or 1)
        if largest >= size:
            return f"min_degree and max_degree must be below N = {size}; got {largest}"
        if self.min_degree == self.max_degree and size * largest % 2:
            return f"N times the degree must be even; got N = {size} times {largest}"
        return ""

    def pairs(self, size: int, rng: np.random.Generator) -> Pairs:
        """Return randomly paired agents."""
        degrees = self.drawn(size, rng) if self.degrees is None else np.asarray(self.degrees)
        return pairs_of_degrees(degrees, rng)

    def drawn(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """Draw degrees with an even sum from the power law."""
        values = np.arange(self.min_degree, (self.max_degree or size - 1) + 1)
        logs = -(self.exponent or 0.0) * np.log(values)
        cumulative = np.cumsum(np.exp(logs - logs.max()))

        def draw(count: int) -> np.ndarray:
            return np.asarray(values[np.searchsorted(cumulative, rng.random(count) * cumulative[-1], side="right")])

        degrees = draw(size)
        if degrees.sum() % 2:
            one = int(rng.integers(size))
            while degrees.sum() % 2:
                degrees[one] = draw(1)[0]
        if problem := degrees_problem(degrees):
            refuse(f"no network has the degrees that were drawn: {problem}")
        return degrees
