"""The one-step view: the distribution of an opinion after an update, given what came before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

#: Probability that rounding alone leaves.
_NO_MASS = 1e-12


class Received(NamedTuple):
    """Opinions of T receivers and the messages that reach them, in the model's units, as input for transitions.

    Attributes
    ----------
    own : ndarray (T,)
        Opinions before; (T, F) if they are traits of F features.
    said : ndarray (T, m)
        Messages; 0 if one is missing. (T, 1, F) if they are traits.
    present : ndarray (T, m) of bool
        Whether there is a message.
    weights : ndarray (T, m)
        Weights of messages; 0 if one is missing.
    start : ndarray (T,) or None
        Initial opinions, if given.
    limits : (float, float)
        Range of opinions, in units of opinion.
    """

    own: np.ndarray
    said: np.ndarray
    present: np.ndarray
    weights: np.ndarray
    start: np.ndarray | None
    limits: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Transition:
    """Distribution of the next opinion of each of T receivers: point masses, and a density for the rest.

    Attributes
    ----------
    values : ndarray (T, A)
        Locations of the point masses; (T, A, F) if opinions are traits.
    probabilities : ndarray (T, A)
        Their probabilities, >= 0; they sum to at most 1.
    density : callable or None
        ``density(opinions (T,)) -> (T,)``: density of the rest, per unit of opinion. It integrates to 1 minus the sum
        of the point masses.
    """

    values: np.ndarray
    probabilities: np.ndarray
    density: Callable[[np.ndarray], np.ndarray] | None = None

    def probability(self, opinions: np.ndarray, tolerance: float = 0.0) -> np.ndarray:
        """Return the probability of the point masses within `tolerance` of given opinions, shape (T,)."""
        near = np.abs(self.values - np.asarray(opinions, dtype=float)[:, None]) <= tolerance
        hit = near.reshape(*self.probabilities.shape, -1).all(axis=2)
        return np.asarray((self.probabilities * hit).sum(axis=1))

    @property
    def rest(self) -> np.ndarray:
        """Probability of the continuous part, shape (T,)."""
        return np.asarray(np.clip(1.0 - self.probabilities.sum(axis=1), 0.0, 1.0))

    def around(self, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Distribute the mass on an even grid; return node numbers, from 0, and the mass that each receives.

        Both are (T, E), and one node can occur several times. A point mass is split between the two nodes around it in
        shares that preserve its mean; a point beyond an end goes to that end. The continuous part goes to each node in
        proportion to its density there, with half the weight at the two ends.
        """
        size, last = len(self.values), len(nodes) - 1
        exact = np.clip((self.values - nodes[0]) / (nodes[1] - nodes[0]), 0, last)
        below = np.minimum(exact.astype(np.int64), last - 1)
        above = self.probabilities * (exact - below)
        places, mass = [below, below + 1], [self.probabilities - above, above]
        if self.density is not None and (self.rest > _NO_MASS).any():
            heights = np.stack([self.density(np.full(size, node)) for node in nodes], axis=1)
            heights[:, [0, -1]] /= 2
            total = heights.sum(axis=1, keepdims=True)
            places.append(np.tile(np.arange(last + 1), (size, 1)))
            mass.append(self.rest[:, None] * np.divide(heights, total, out=np.zeros_like(heights), where=total > 0))
        return np.hstack(places), np.hstack(mass)

    def on_grid(self, nodes: np.ndarray) -> np.ndarray:
        """Return the mass on the nodes of an even grid, (T, G), distributed as in :meth:`around`; rows sum to 1."""
        shape = len(self.values), len(nodes)
        places, mass = self.around(nodes)
        cells = np.arange(shape[0])[:, None] * shape[1] + places
        return np.bincount(cells.ravel(), mass.ravel(), shape[0] * shape[1]).reshape(shape)
