"""Regions of like agents on a network, of opinions or of cultures of several features."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from opinionsim.errors import MeasurementError
from opinionsim.metrics._arrays import Measured, opinion_array, ratio
from opinionsim.metrics._network import TieArrays, Ties


def _cultures(opinions: ArrayLike, *, vectors: bool) -> tuple[np.ndarray, tuple[int, ...]]:
    """Opinions as cultures (R, N, F), and the leading shape."""
    values = opinion_array(opinions)
    if not vectors:
        values = values[..., None]
    if values.ndim < 2 or values.shape[-2] == 0:
        raise MeasurementError(f"vectors of opinions must be an array (..., N, D); got shape {values.shape}")
    return values.reshape(-1, *values.shape[-2:]), values.shape[:-2]


def _back(values: list[float], shape: tuple[int, ...]) -> Measured:
    return np.reshape(values, shape) if shape else values[0]


def _region_sizes(cultures: np.ndarray, ties: TieArrays) -> np.ndarray:
    """Agents in each region of one population (N, F), those without opinion left out."""
    present = ~np.isnan(cultures).any(axis=1)
    # Adding 0 turns -0 into 0, which it equals.
    _, kinds = np.unique(cultures + 0.0, axis=0, return_inverse=True)
    labels = kinds.reshape(-1)
    if not ties.complete:
        labels = ties.parts(labels[ties.speakers] == labels[ties.listeners])
    sizes = np.bincount(labels[present])
    return np.asarray(sizes[sizes > 0])


def regions(opinions: ArrayLike, network: Ties, vectors: bool = False) -> Measured:
    """Number of regions: agents that hold the same opinion and are joined by ties among them.

    Parameters
    ----------
    opinions : array_like (..., N) or (..., N, D)
        One opinion an agent; NaN where there is none.
    network : Network or tuple of arrays
        Who hears whom; a tie joins in both directions.
    vectors : bool
        Whether the last axis holds the dimensions of opinions; agents are then alike if they are so in all.

    Returns
    -------
    float or ndarray (...)
        At least 1; NaN when no agent has an opinion.

    Raises
    ------
    MeasurementError
        If the network is not valid or of another number of agents.

    Notes
    -----
    - Meaning: regions of like neighbours
    - Formula: ``connected components of the ties with xi = xj``
    - Values: 1 to n
    - Source: Axelrod 1997, doi 10.1177/0022002797041002001
    - Pitfall: opinions must be equal, so that continuous ones make a region each
    """
    cultures, shape = _cultures(opinions, vectors=vectors)
    ties = TieArrays.of(network, cultures.shape[1])
    sizes = [_region_sizes(each, ties) for each in cultures]
    return _back([float(each.size) if each.size else np.nan for each in sizes], shape)


def largest_region(opinions: ArrayLike, network: Ties, vectors: bool = False) -> Measured:
    """Share of agents in the largest region (:func:`regions`).

    Parameters
    ----------
    opinions : array_like (..., N) or (..., N, D)
        One opinion an agent; NaN where there is none.
    network : Network or tuple of arrays
        Who hears whom; a tie joins in both directions.
    vectors : bool
        Whether the last axis holds the dimensions of opinions.

    Returns
    -------
    float or ndarray (...)
        From 1/n to 1, where all are alike and joined; NaN when no agent has an opinion.

    Raises
    ------
    MeasurementError
        If the network is not valid or of another number of agents.

    Notes
    -----
    - Meaning: share of agents in the largest region of like neighbours
    - Formula: ``agents in the largest connected component of the ties with xi = xj / n``
    - Values: 1/n to 1
    - Source: Castellano et al. 2000, doi 10.1103/PhysRevLett.85.3536
    - Pitfall: opinions must be equal; compare networks of several sizes before speaking of order
    """
    cultures, shape = _cultures(opinions, vectors=vectors)
    ties = TieArrays.of(network, cultures.shape[1])
    sizes = [_region_sizes(each, ties) for each in cultures]
    return _back([float(each.max() / each.sum()) if each.size else np.nan for each in sizes], shape)


def partial_overlap(opinions: ArrayLike, network: Ties, vectors: bool = False) -> Measured:
    """Share of ties whose ends agree in some dimensions, but not in all.

    Parameters
    ----------
    opinions : array_like (..., N) or (..., N, D)
        One opinion an agent; NaN where there is none.
    network : Network or tuple of arrays
        Who hears whom; ties count with their weight.
    vectors : bool
        Whether the last axis holds the dimensions of opinions. If not there is one, in which ends agree or differ.

    Returns
    -------
    float or ndarray (...)
        From 0, a frozen state of Axelrod's model, to 1; NaN without ties between agents that have an opinion.

    Raises
    ------
    MeasurementError
        If the network is not valid or of another number of agents.

    Notes
    -----
    - Meaning: ties over which a culture can still change
    - Formula: ``share of ties with 0 < number of d with xid = xjd < D``
    - Values: 0 to 1
    - Source: Castellano et al. 2000, doi 10.1103/PhysRevLett.85.3536
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
    """The same of the pairs of a complete network, by the kinds of cultures, which are fewer than agents at the end."""
    present = cultures[~np.isnan(cultures).any(axis=1)]
    kinds, sizes = np.unique(present + 0.0, axis=0, return_counts=True)
    active = 0
    for kind, size in zip(kinds, sizes, strict=True):
        shared = (kinds == kind).sum(axis=1)
        active += int(size * sizes[(shared > 0) & (shared < cultures.shape[1])].sum())
    return float(active), float(len(present) * (len(present) - 1))
