"""Communities of a network that the Leiden algorithm finds, and their modularity."""

from __future__ import annotations

import random  # noqa: TID251 - igraph draws from it, unless told otherwise
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from opinionsim.errors import MeasurementError, packages
from opinionsim.metrics._arrays import Measured, Rows, tally
from opinionsim.metrics._between_groups import numbered
from opinionsim.metrics._on_networks import TieArrays, Ties
from opinionsim.registry import part

#: Runs of Leiden; the best partition of all runs counts, because a single run often misses it.
_RUNS = 10

#: Lock while igraph draws from our generator, because igraph has only one generator for the whole process.
_drawing = Lock()


def communities(network: Ties) -> np.ndarray:
    """Partition a network into communities with the Leiden algorithm, which maximises modularity.

    Parameters
    ----------
    network : Network
        Who hears whom; ties count with their weight, in both directions.

    Returns
    -------
    ndarray (N,) of int64
        Number of each agent's community, from 0 in the order of their first agents; an agent without ties forms a
        community by itself. Equal networks give equal numbers.

    Raises
    ------
    MeasurementError
        If the network is not valid, or the extra ``networks`` is not installed.

    Notes
    -----
    The best of ten seeded runs of ``community_leiden`` of igraph (Traag, Waltman and van Eck 2019,
    doi:10.1038/s41598-019-41695-z). The search is certain to find the best partition only
    in small networks. Another version of igraph, or another order of the agents, may find a slightly better or worse
    one.
    """
    size = _size(network)
    ties = TieArrays.of(network, size)
    return np.zeros(size, dtype=np.int64) if ties.complete else _leiden(ties, np.ones(size, dtype=bool))


@part("metric", name="modularity")
def modularity(opinions: ArrayLike | None, network: Ties, groups: ArrayLike | None = None) -> Measured:
    r"""Share of ties within communities, minus the share expected from the degrees alone.

    :math:`Q = \sum_c \left(\frac{w_c}{W} - \left(\frac{s_c}{2W}\right)^2\right)`, with the weight W of all ties,
    the weight :math:`w_c` of ties within c, and the sum :math:`s_c` of the degrees of its members.

    Parameters
    ----------
    opinions : array_like (..., N) or None
        One opinion per agent; agents without one (NaN) are left out with their ties. Opinions have no other effect
        unless they define the groups. None means the whole network.
    network : Network or tuple of arrays
        Who hears whom; ties count with their weight, in both directions.
    groups : array_like (N,) or (..., N), optional
        Name of each agent's group; NaN or None leaves out an agent. Default the partition of :func:`communities`.

    Returns
    -------
    float or ndarray (...)
        Below 1. 0 if all agents are in one community, as in a complete network; negative if ties within groups are
        rarer than expected. NaN without ties.

    Raises
    ------
    MeasurementError
        If an argument is not valid, or groups are left out and the extra ``networks`` is not installed.

    Notes
    -----
    - Meaning: how far ties keep to communities
    - Formula: ``sum over communities of w_c/W - (s_c/(2 W))^2``
    - Values: -1/2 to 1
    - Source: Newman & Girvan 2004
    - Pitfall: describes the network, not the opinions, unless you pass groups; large by chance in sparse networks

    Newman and Girvan 2004, with weights. Directions are dropped: ties i to j and j to i add up.
    """
    rows = Rows.of(np.zeros(_size(network)) if opinions is None else opinions)
    size = rows.x.shape[1]
    ties = TieArrays.of(network, size)
    known: dict[bytes, np.ndarray] = {}
    if groups is None:
        labels = np.empty(rows.x.shape, dtype=np.int64)
        for r, present in enumerate(rows.present):
            if present.tobytes() not in known:
                known[present.tobytes()] = np.zeros(size, int) if ties.complete else _leiden(ties, present)
            labels[r] = known[present.tobytes()]
    else:
        labels = numbered(groups, (*rows.shape, size))
    return rows.back(np.array([_modularity(row, ties) for row in np.where(rows.present, labels, -1)]))


def _modularity(labels: np.ndarray, ties: TieArrays) -> float:
    """Modularity of the partition into labels (N,); agents labelled -1 are left out."""
    most = int(labels.max(initial=0)) + 1
    if ties.complete:
        sizes = tally(labels[None], most)[0]
        n = sizes.sum()
        return float((sizes * (sizes - 1)).sum() / (n * (n - 1)) - ((sizes / n) ** 2).sum()) if n > 1 else np.nan
    first, second = labels[ties.listeners], labels[ties.speakers]
    kept = (first >= 0) & (second >= 0)
    first, second, weights = first[kept], second[kept], ties.weights[kept]
    total = weights.sum()
    if not total > 0:
        return float("nan")
    degrees = np.bincount(first, weights, most) + np.bincount(second, weights, most)
    return float(weights[first == second].sum() / total - ((degrees / (2 * total)) ** 2).sum())


def _size(network: Ties) -> int:
    """Number of agents of a network that contains this number."""
    size = getattr(network, "n", None)
    if size is None:
        raise MeasurementError(f"a network without opinions must be a Network; got {type(network).__name__}")
    return int(size)


def _leiden(ties: TieArrays, present: np.ndarray) -> np.ndarray:
    """Community of each agent (N,), from 0 in order of their first agents, of the network among those present."""
    (igraph,) = packages("modularity", "networks", "igraph", otherwise=", or give modularity its groups")

    kept = present[ties.listeners] & present[ties.speakers] & (ties.weights > 0)
    ends = np.sort(np.stack([ties.listeners[kept], ties.speakers[kept]], axis=1), axis=1)
    pairs, which = np.unique(ends, axis=0, return_inverse=True)
    weights = np.bincount(which.ravel(), ties.weights[kept], minlength=len(pairs))
    graph = igraph.Graph(ties.n, pairs)
    found, best = np.arange(ties.n), -np.inf
    with _drawing:
        igraph.set_random_number_generator(random.Random(0))  # noqa: S311 - not for secrets
        try:
            for _ in range(_RUNS if len(pairs) else 0):
                one: Any = graph.community_leiden("modularity", weights=weights.tolist())
                quality = one.recalculate_modularity()
                if quality > best:
                    found, best = np.array(one.membership), quality
        finally:
            igraph.set_random_number_generator(random)
    _, first, labels = np.unique(found, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[labels], dtype=np.int64)
