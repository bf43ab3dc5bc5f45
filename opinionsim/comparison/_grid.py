"""Opinions on a grid: positions of scale points, their misreading, and the effect of an update."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from opinionsim.classic import ClassicModel, Transition, transition

#: Nodes of the grid.
NODES = 41
#: Nodes for each bin of the start: with 11 bins the likelihood is that of the full state to 0.002 nats an update, with
#: one for each of five points it is off by 0.08.
_BIN = 4
#: Places inside a cell, in its widths from the node, over which an update is averaged: a confidence bound then moves
#: the likelihood smoothly.
_WITHIN = np.array([-1.0, 0.0, 1.0]) / 3.0
#: Changes of opinion and probabilities below this count as 0.
_NONE = 1e-12


class Steps(NamedTuple):
    """Effect of an update for each pair of nodes, own and read: sparse rows for each bin of the start in turn.

    Attributes
    ----------
    first : ndarray of int64 (S * G * G + 1,)
        Index at which the row of each bin and pair begins.
    node, mass : ndarray (E,)
        Nodes and their probabilities.
    """

    first: np.ndarray
    node: np.ndarray
    mass: np.ndarray


class Grid:
    """An even grid over the range of opinions.

    Parameters
    ----------
    points : array_like of float (k,)
        Points of the scale, evenly spaced, lowest first.
    nodes : int
        Number of nodes, from the lowest point to the highest.

    Attributes
    ----------
    nodes : ndarray (G,)
        Opinions at the nodes.
    share : ndarray (G, k)
        Share of the cell around each node that is nearest to each point.
    """

    def __init__(self, points: Any, nodes: int = NODES) -> None:
        self.points = np.asarray(points, dtype=float)
        self.low, self.high = float(self.points[0]), float(self.points[-1])
        self.nodes = np.linspace(self.low, self.high, nodes)
        self.width = float(self.nodes[1] - self.nodes[0])
        middles = (self.points[1:] + self.points[:-1]) / 2
        lower, upper = np.concatenate([[-np.inf], middles]), np.concatenate([middles, [np.inf]])
        left, right = self.nodes[:, None] - self.width / 2, self.nodes[:, None] + self.width / 2
        self.share = np.clip(np.minimum(right, upper) - np.maximum(left, lower), 0.0, None) / self.width

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def starts(self) -> np.ndarray:
        """Middles of the bins for initial opinions, for agents that return to them, (S,)."""
        return self.nodes[::_BIN]

    @property
    def bins(self) -> np.ndarray:
        """Bin of each node, (G,)."""
        return (np.arange(len(self)) + _BIN // 2) // _BIN

    @cached_property
    def _pairs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Own nodes of all pairs, (G * G,), and opinions within the two cells, own and read, each (9, G * G)."""
        own, read = np.repeat(self.nodes, len(self)), np.tile(self.nodes, len(self))
        left, right = (each.ravel()[:, None] * self.width for each in np.meshgrid(_WITHIN, _WITHIN))
        return own, np.clip(own + left, self.low, self.high), np.clip(read + right, self.low, self.high)

    def steps(self, model: ClassicModel, parameters: Mapping[str, Any], starts: np.ndarray | None = None) -> Steps:
        """Effect of a model's update for each pair of nodes.

        Changes are averaged within cells, separately for increases, decreases and no change. An update that only part
        of a cell can make is therefore carried out for that part.

        Parameters
        ----------
        model : ClassicModel
            A model of single numbers.
        parameters : mapping
            Its parameters, in the units of the scale.
        starts : ndarray (S,), optional
            Initial opinions, for a model that returns to them.
        """
        own, before, read = self._pairs
        rows = []
        # One start at a time, whose numbers fit into the processor's memory.
        for start in [None] if starts is None else starts:
            given = {} if start is None else {"start": np.full(before.size, start)}
            found = transition(model, before.ravel(), read.ravel(), range=(self.low, self.high), **given, **parameters)
            node, mass = _averaged(found, before, own).around(self.nodes)
            there = mass > _NONE
            rows.append((there.sum(axis=1), node[there], mass[there]))
        count, node, mass = map(np.concatenate, zip(*rows, strict=True))
        return Steps(np.concatenate([[0], np.cumsum(count)]), node, mass)

    def moved(self, pull: Any, towards: Any, shift: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """Result of a pull and a shift at each node: the node below, and the share of the one above, each (G,).

        Each (S, G) for pulls and points (S, 1).
        """
        to = np.clip(self.nodes + pull * (towards - self.nodes) + shift, self.low, self.high)
        places = (to - self.low) / self.width
        below = np.minimum(places.astype(np.int64), len(self) - 2)
        return below, places - below

    def readings(self, misread: np.ndarray) -> np.ndarray:
        """Probability of each rating at each node, (G, k), for a misclassification matrix (k, k), true by read."""
        return np.ascontiguousarray(self.share @ misread)


def _averaged(found: Transition, before: np.ndarray, own: np.ndarray) -> Transition:
    """The mean of transitions from places inside cells, `before` (9, T), around nodes, `own` (T,)."""
    values, chances = (each.reshape(*before.shape, -1) for each in (found.values, found.probabilities))
    change, density, count = values - before[:, :, None], found.density, len(before)
    moving = [chances * (change > _NONE), chances * (change < -_NONE)]
    masses = [each.mean(axis=0) for each in moving]
    places = [
        own[:, None] + np.einsum("pta,pta->ta", each, change) / count / np.maximum(mass, _NONE)
        for each, mass in zip(moving, masses, strict=True)
    ]
    staying = chances.mean(axis=0) - masses[0] - masses[1]
    mean_density = density and (lambda to: density(np.tile(to, count)).reshape(count, -1).mean(axis=0))
    held = np.broadcast_to(own[:, None], staying.shape)
    return Transition(np.hstack([*places, held]), np.hstack([*masses, staying]), mean_density)


def misreading(k: int, error: float, near: float) -> np.ndarray:
    """Misclassification matrix (k, k), true by read, from two parameters.

    Parameters
    ----------
    k : int
        Points of the scale.
    error : float
        Probability of reading another point than the true one.
    near : float
        Share of these errors that falls on neighbouring points; all errors do if there are no other points.
    """
    distance = np.abs(np.subtract.outer(np.arange(k), np.arange(k)))
    matrix = np.where(distance == 0, 1.0 - error, 0.0)
    for is_near, share in ((distance == 1, near), (distance > 1, 1.0 - near)):
        count = is_near.sum(axis=1, keepdims=True)
        other = (distance > 0).sum(axis=1, keepdims=True) - count
        matrix += error * is_near / np.maximum(count, 1) * np.where(other > 0, share, 1.0)
    return matrix
