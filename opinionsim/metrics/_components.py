"""Components of the network: agents that ties join, all of them or those between agents of like opinion."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from opinionsim.metrics._arrays import Measured, Rows, positive, ratio
from opinionsim.metrics._network import TieArrays, Ties


def _sizes(rows: Rows, network: Ties, within: float | None) -> list[np.ndarray]:
    """Sizes of the components of agents with an opinion, for each row."""
    if within is not None:
        positive(within, "within", zero=True)
    ties = TieArrays.of(network, rows.x.shape[1])
    found = []
    for x, present in zip(rows.x, rows.present, strict=True):
        if ties.complete:
            # Neighbours in order are all that can join two components.
            ranked = np.sort(x[present])
            gaps = np.zeros(0, dtype=bool) if within is None else np.diff(ranked) > within
            ends = np.concatenate([[0], np.flatnonzero(gaps) + 1, [ranked.size]])
            found.append(np.diff(ends) if ranked.size else np.zeros(0))
            continue
        kept = present[ties.listeners] & present[ties.speakers]
        if within is not None:
            kept &= np.abs(x[ties.listeners] - x[ties.speakers]) <= within
        found.append(np.bincount(ties.parts(kept)[present]))
    return [sizes[sizes > 0] for sizes in found]


def components(opinions: ArrayLike, network: Ties, within: float | None = None) -> Measured:
    """Number of components of the network.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion an agent; NaN where there is none, which is left out with its ties.
    network : Network or tuple of arrays
        Who hears whom; directions do not matter, and ties of weight 0 are none.
    within : float, optional
        Largest distance of opinions that a tie joins, at least 0; by default ties join any.

    Returns
    -------
    float or ndarray (...)
        From 1 to the number of agents; NaN without opinions.

    Raises
    ------
    MeasurementError
        If an argument is not valid or the network is of another number of agents.

    Notes
    -----
    - Meaning: parts of the network without a tie between them
    - Formula: ``number of components``
    - Values: 1 to n
    - Pitfall: agents without ties are components of one
    """
    rows = Rows.of(opinions)
    found = np.array([sizes.size for sizes in _sizes(rows, network, within)], dtype=float)
    return rows.back(np.where(rows.n > 0, found, np.nan))


def largest_component(opinions: ArrayLike, network: Ties, within: float | None = None) -> Measured:
    """Share of agents in the largest component of the network.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion an agent; NaN where there is none, which is left out with its ties.
    network : Network or tuple of arrays
        Who hears whom; directions do not matter, and ties of weight 0 are none.
    within : float, optional
        Largest distance of opinions that a tie joins, at least 0; by default ties join any.

    Returns
    -------
    float or ndarray (...)
        Above 0, at most 1; NaN without opinions.

    Raises
    ------
    MeasurementError
        If an argument is not valid or the network is of another number of agents.

    Notes
    -----
    - Meaning: share of agents in the largest component
    - Formula: ``size of the largest component / n``
    - Values: 0 to 1
    - Pitfall: with `within`, ends of a chain may be farther apart
    """
    rows = Rows.of(opinions)
    most = np.array([sizes.max(initial=0) for sizes in _sizes(rows, network, within)], dtype=float)
    return rows.back(ratio(most, rows.n.astype(float)))
