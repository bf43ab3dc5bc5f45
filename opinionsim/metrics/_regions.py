"""Parts of a network: components joined by ties, and regions of agents with equal opinions or cultures."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from opinionsim.errors import MeasurementError
from opinionsim.metrics._arrays import Measured, opinion_array, positive, ratio
from opinionsim.metrics._on_networks import TieArrays, Ties
from opinionsim.registry import part

#: Sizes of the parts of each population, and the leading shape of the populations.
_Parts: TypeAlias = tuple[list[np.ndarray], tuple[int, ...]]


def _cultures(opinions: ArrayLike, *, vectors: bool = False) -> tuple[np.ndarray, tuple[int, ...]]:
    """Opinions as cultures (R, N, F), and the leading shape."""
    values = opinion_array(opinions)
    if not vectors:
        values = values[..., None]
    if values.ndim < 2 or values.shape[-2] == 0:
        raise MeasurementError(f"vectors of opinions must be an array (..., N, D); got shape {values.shape}")
    return values.reshape(-1, *values.shape[-2:]), values.shape[:-2]


def _parts(cultures: np.ndarray, shape: tuple[int, ...], network: Ties, within: float) -> _Parts:
    """Parts into which ties join the agents with an opinion; only ties whose ends differ by at most `within` count."""
    ties = TieArrays.of(network, cultures.shape[1])
    found = []
    for own in cultures:
        present = ~np.isnan(own).any(axis=1)
        if not ties.complete:
            like = (np.abs(own[ties.listeners] - own[ties.speakers]) <= within).all(axis=1)
            labels = ties.parts(like)[present]
        elif own.shape[1] > 1:
            # Adding 0 turns -0 into 0, which it equals.
            labels = np.unique(own[present] + 0.0, axis=0, return_inverse=True)[1].reshape(-1)
        else:
            # Neighbours in order are all that can join two parts.
            ranked = np.sort(own[present, 0])
            labels = np.cumsum(np.diff(ranked, prepend=ranked[:1]) > within)
        sizes = np.bincount(labels)
        found.append(sizes[sizes > 0])
    return found, shape


def _numbers(parts: _Parts) -> Measured:
    return _back([float(sizes.size) if sizes.size else np.nan for sizes in parts[0]], parts[1])


def _largest(parts: _Parts) -> Measured:
    return _back([float(sizes.max() / sizes.sum()) if sizes.size else np.nan for sizes in parts[0]], parts[1])


def _back(values: list[float], shape: tuple[int, ...]) -> Measured:
    return np.reshape(values, shape) if shape else values[0]


def _distance(within: float | None) -> float:
    return np.inf if within is None else positive(within, "within", zero=True)


@part("metric", name="components")
def components(opinions: ArrayLike, network: Ties, within: float | None = None) -> Measured:
    """Number of components of the network.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent. Agents without an opinion (NaN) are left out with their ties.
    network : Network or tuple of arrays
        Who hears whom; directions do not matter, and ties of weight 0 do not count.
    within : float, optional
        Largest distance of opinions that a tie joins, at least 0; by default ties join any.

    Returns
    -------
    float or ndarray (...)
        From 1 to the number of agents; NaN without opinions.

    Raises
    ------
    MeasurementError
        If an argument is not valid or the network has a different number of agents.

    Notes
    -----
    - Meaning: parts of the network without a tie between them
    - Formula: ``number of components``
    - Values: 1 to n
    - Pitfall: each agent without ties is a component
    """
    return _numbers(_parts(*_cultures(opinions), network, _distance(within)))


@part("metric", name="largest_component")
def largest_component(opinions: ArrayLike, network: Ties, within: float | None = None) -> Measured:
    """Share of agents in the largest component of the network.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent. Agents without an opinion (NaN) are left out with their ties.
    network : Network or tuple of arrays
        Who hears whom; directions do not matter, and ties of weight 0 do not count.
    within : float, optional
        Largest distance of opinions that a tie joins, at least 0; by default ties join any.

    Returns
    -------
    float or ndarray (...)
        Above 0, at most 1; NaN without opinions.

    Raises
    ------
    MeasurementError
        If an argument is not valid or the network has a different number of agents.

    Notes
    -----
    - Meaning: share of agents in the largest component
    - Formula: ``size of the largest component / n``
    - Values: 0 to 1
    - Pitfall: with `within`, the ends of a chain may be farther apart than that
    """
    return _largest(_parts(*_cultures(opinions), network, _distance(within)))


@part("metric", name="regions")
def regions(opinions: ArrayLike, network: Ties, vectors: bool = False) -> Measured:
    """Number of regions: agents that have the same opinion and are joined by ties.

    Parameters
    ----------
    opinions : array_like (..., N) or (..., N, D)
        One opinion per agent; NaN if the agent has none.
    network : Network or tuple of arrays
        Who hears whom; a tie joins in both directions.
    vectors : bool
        Whether the last axis contains the dimensions of opinions; agents are then equal if they agree in all
        dimensions.

    Returns
    -------
    float or ndarray (...)
        At least 1; NaN when no agent has an opinion.

    Raises
    ------
    MeasurementError
        If the network is not valid or has a different number of agents.

    Notes
    -----
    - Meaning: regions of neighbours with equal opinions
    - Formula: ``connected components of the ties with xi = xj``
    - Values: 1 to n
    - Source: Axelrod 1997
    - Pitfall: compares opinions for equality, so each continuous opinion makes its own region
    """
    return _numbers(_parts(*_cultures(opinions, vectors=vectors), network, 0.0))


@part("metric", name="largest_region")
def largest_region(opinions: ArrayLike, network: Ties, vectors: bool = False) -> Measured:
    """Share of agents in the largest region (:func:`regions`).

    Parameters
    ----------
    opinions : array_like (..., N) or (..., N, D)
        One opinion per agent; NaN if the agent has none.
    network : Network or tuple of arrays
        Who hears whom; a tie joins in both directions.
    vectors : bool
        Whether the last axis contains the dimensions of opinions.

    Returns
    -------
    float or ndarray (...)
        From 1/n to 1, if all agents are equal and joined by ties; NaN when no agent has an opinion.

    Raises
    ------
    MeasurementError
        If the network is not valid or has a different number of agents.

    Notes
    -----
    - Meaning: share of agents in the largest such region
    - Formula: ``agents in the largest connected component of the ties with xi = xj / n``
    - Values: 1/n to 1
    - Source: Castellano et al. 2000
    - Pitfall: compares opinions for equality; compare networks of several sizes before you conclude that there is order
    """
    return _largest(_parts(*_cultures(opinions, vectors=vectors), network, 0.0))


@part("metric", name="partial_overlap")
def partial_overlap(opinions: ArrayLike, network: Ties, vectors: bool = False) -> Measured:
    """Share of ties whose ends agree in some dimensions, but not in all.

    Parameters
    ----------
    opinions : array_like (..., N) or (..., N, D)
        One opinion per agent; NaN if the agent has none.
    network : Network or tuple of arrays
        Who hears whom; ties count with their weight.
    vectors : bool
        Whether the last axis contains the dimensions of opinions. Otherwise, opinions have a single dimension, in which
        ends agree or differ.

    Returns
    -------
    float or ndarray (...)
        From 0, a frozen state of Axelrod's model, to 1; NaN without ties between agents that have an opinion.

    Raises
    ------
    MeasurementError
        If the network is not valid or has a different number of agents.

    Notes
    -----
    - Meaning: ties over which a culture can still change
    - Formula: ``share of ties with 0 < number of d with xid = xjd < D``
    - Values: 0 to 1
    - Source: Castellano et al. 2000
    - Pitfall: 0 for opinions of one dimension
    """
    cultures, shape = _cultures(opinions, vectors=vectors)
    ties = TieArrays.of(network, cultures.shape[1])
    count = _pairs_of_all if ties.complete else _pairs_of_ties
    found = np.array([count(each, ties) for each in cultures], dtype=float).reshape(-1, 2)
    return _back(ratio(found[:, 0], found[:, 1]).tolist(), shape)


def _pairs_of_ties(cultures: np.ndarray, ties: TieArrays) -> tuple[float, float]:
    """Weight of the ties that overlap in part, and of all."""
    present = ~np.isnan(cultures).any(axis=1)
    kept = present[ties.speakers] & present[ties.listeners]
    shared = np.zeros(kept.size, dtype=np.int64)
    for feature in cultures.T:
        shared += feature[ties.speakers] == feature[ties.listeners]
    active = kept & (shared > 0) & (shared < cultures.shape[1])
    return float(ties.weights[active].sum()), float(ties.weights[kept].sum())


def _pairs_of_all(cultures: np.ndarray, ties: TieArrays) -> tuple[float, float]:
    """The same for the pairs of a complete network, by distinct cultures, which are eventually fewer than agents."""
    present = cultures[~np.isnan(cultures).any(axis=1)]
    kinds, sizes = np.unique(present + 0.0, axis=0, return_counts=True)
    active = 0
    for kind, size in zip(kinds, sizes, strict=True):
        shared = (kinds == kind).sum(axis=1)
        active += int(size * sizes[(shared > 0) & (shared < cultures.shape[1])].sum())
    return float(active), float(len(present) * (len(present) - 1))
