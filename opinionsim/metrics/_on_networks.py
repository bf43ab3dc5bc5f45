"""Metrics of opinions on a network, which show whether ties join agents with similar opinions.

A network is an :class:`opinionsim.networks.Network`, or a tuple (speakers, listeners) or (speakers, listeners, weights)
of arrays with one entry per tie; an undirected tie has two entries, one in each direction. The metrics leave out ties
of an agent with itself and ties to agents without an opinion.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from opinionsim.errors import MeasurementError
from opinionsim.metrics._arrays import Measured, Range, Rows, opinion_array, positive, ratio, tally
from opinionsim.metrics._between_groups import numbered
from opinionsim.registry import part

#: A network object with `n`, `speakers`, `listeners`, `weights` and `complete`, or a tuple of arrays.
Ties: TypeAlias = Any

#: Values processed at a time, rows times ties, so that memory stays bounded.
_BATCH = 4_000_000


@dataclass(frozen=True)
class TieArrays:
    """Ordered pairs of agents and their weights; `complete` means all pairs, which are then not listed."""

    n: int
    speakers: np.ndarray
    listeners: np.ndarray
    weights: np.ndarray
    complete: bool

    @classmethod
    def of(cls, network: Ties, n: int) -> TieArrays:
        """Check a network against a number of agents."""
        complete = bool(getattr(network, "complete", False))
        size = getattr(network, "n", n)
        if size != n:
            raise MeasurementError(f"the network has {size} agents, but there are opinions of {n}")
        if isinstance(network, tuple | list):
            parts = tuple(network)
        elif hasattr(network, "speakers"):
            parts = (network.speakers, network.listeners, network.weights)
        else:
            parts = ()
        if len(parts) not in (2, 3):
            raise MeasurementError(
                "network must be a Network or a tuple (speakers, listeners) or (speakers, listeners, weights); "
                f"got {type(network).__name__}"
            )
        speakers, listeners = (np.asarray(ends) for ends in parts[:2])
        given = parts[2] if len(parts) == 3 else None
        weights = np.ones(speakers.shape) if given is None else np.asarray(given, dtype=float)
        if speakers.ndim != 1 or not speakers.shape == listeners.shape == weights.shape:
            raise MeasurementError("speakers, listeners and weights of a network must be arrays of one length")
        ends = np.concatenate([speakers, listeners])
        if ends.size and (not np.issubdtype(ends.dtype, np.integer) or ends.min() < 0 or ends.max() >= n):
            raise MeasurementError(f"speakers and listeners of a network must be whole numbers from 0 to {n - 1}")
        if not (np.isfinite(weights).all() and (weights >= 0).all()):
            raise MeasurementError("weights of a network must be finite and at least 0 for this metric")
        kept = speakers != listeners
        return cls(n, speakers[kept].astype(np.int64), listeners[kept].astype(np.int64), weights[kept], complete)

    def heard(self, values: np.ndarray) -> np.ndarray:
        """Weighted sum of values over the agents that each agent hears: (R, N) to (R, N)."""
        if self.complete:
            return np.asarray(values.sum(axis=1, keepdims=True) - values)
        from scipy.sparse import csr_array

        matrix = csr_array((self.weights, (self.listeners, self.speakers)), shape=(self.n, self.n))
        return np.asarray((matrix @ values.T).T)

    def parts(self, kept: np.ndarray) -> np.ndarray:
        """Component number of each agent (N,), from 0; the kept ties (E,) join agents in both directions."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        kept = kept & (self.weights > 0)
        ends = (self.listeners[kept], self.speakers[kept])
        joined = coo_array((np.ones(ends[0].size, dtype=np.int8), ends), shape=(self.n, self.n))
        return np.asarray(connected_components(joined, directed=False)[1])

    def total(self, rows: Rows, of_pairs: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
        """Weighted sum over ties of a function of both ends' opinions, (R,); ties where it is NaN are left out."""
        found = np.zeros(len(rows.x))
        batch = max(1, _BATCH // max(1, len(self.weights)))
        for first in np.arange(0, len(rows.x), batch):
            chosen = slice(first, first + batch)
            pairs = of_pairs(rows.x[chosen][:, self.listeners], rows.x[chosen][:, self.speakers])
            # Not a product of matrices, whose last bit depends on the number of threads.
            found[chosen] = np.ascontiguousarray(np.nan_to_num(pairs) * self.weights).sum(axis=1)
        return found

    def weight(self, rows: Rows) -> np.ndarray:
        """Total weight of the ties whose ends both have an opinion, (R,)."""
        present = rows.present.astype(float)
        return np.asarray((present * self.heard(present)).sum(axis=1))


def _correlation(x: np.ndarray, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Weighted Pearson correlation in each row, (R,); NaN where `x` or `y` varies by no more than rounding of `x`."""
    total = weight.sum(axis=1)
    rounding = 1e-12 * np.abs(x).max(axis=1)
    kept = weight > 0
    centred = []
    for values in (x, y):
        mean = ratio((weight * np.where(kept, values, 0.0)).sum(axis=1), total)
        values = np.where(kept, values, mean[:, None])
        flat = np.ptp(values, axis=1) <= rounding
        centred.append(np.where(flat[:, None], 0.0, values - mean[:, None]))
    first, second = centred
    products = [(weight * a * b).sum(axis=1) for a, b in ((first, second), (first, first), (second, second))]
    return np.asarray(np.clip(ratio(products[0], np.sqrt(products[1] * products[2])), -1, 1))


@part("metric", name="neighbour_correlation")
def neighbour_correlation(opinions: ArrayLike, network: Ties) -> Measured:
    """Pearson correlation of agents' opinions with the mean opinion of those they hear.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent; NaN if the agent has none.
    network : Network or tuple of arrays
        Who hears whom; means are weighted by its weights.

    Returns
    -------
    float or ndarray (...)
        From -1 to 1, over the agents that hear an agent with an opinion; NaN if opinions or means do not vary. It is
        always -1 on a complete network.

    Raises
    ------
    MeasurementError
        If the network is not valid or has a different number of agents.

    Notes
    -----
    - Meaning: whether agents hear similar agents
    - Formula: ``Pearson correlation of x with the mean x of those heard``
    - Values: -1 to 1
    - Source: Baumann et al. 2020
    - Pitfall: report the permutation null; below 0 by chance in dense networks, and -1 in the complete network

    Baumann et al. 2020 show echo chambers in the plane of an agent's opinion and its neighbours' mean opinion. Noise in
    coded opinions weakens the correlation.
    """
    rows = Rows.of(opinions)
    ties = TieArrays.of(network, rows.x.shape[1])
    heard = ties.heard(rows.present.astype(float))
    own = np.where(rows.present, rows.deviations, 0.0)
    around = ratio(ties.heard(own), heard)
    return rows.back(_correlation(own, around, (rows.present & (heard > 0)).astype(float)))


@part("metric", name="assortativity")
def assortativity(opinions: ArrayLike, network: Ties) -> Measured:
    """Pearson correlation of the opinions at the two ends of a tie.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent; NaN if the agent has none.
    network : Network or tuple of arrays
        Who hears whom; ties count with their weight.

    Returns
    -------
    float or ndarray (...)
        From -1 to 1; NaN if opinions at either end do not vary. -1/(n - 1) on a complete network.

    Raises
    ------
    MeasurementError
        If the network is not valid or has a different number of agents.

    Notes
    -----
    - Meaning: similarity across ties
    - Formula: ``Pearson correlation of x at the two ends of ties``
    - Values: -1 to 1
    - Source: Newman 2003
    - Pitfall: report the permutation null; agents with more ties count more often

    Newman 2003, numeric. An agent counts once for each of its ties.
    """
    rows = Rows.of(opinions)
    ties = TieArrays.of(network, rows.x.shape[1])
    present, own = rows.present.astype(float), np.where(rows.present, rows.deviations, 0.0)
    weight = ties.weight(rows)
    # Sums over ties of products of powers of both ends' opinions.
    by_listener = ties.heard(present)
    heard = ties.heard(own)
    mean_l = ratio((own * by_listener).sum(axis=1), weight)
    mean_s = ratio((present * heard).sum(axis=1), weight)
    product = ratio((own * heard).sum(axis=1), weight) - mean_l * mean_s
    var_l = ratio((own**2 * by_listener).sum(axis=1), weight) - mean_l**2
    var_s = ratio((present * ties.heard(own**2)).sum(axis=1), weight) - mean_s**2
    scale = rows.average(rows.deviations**2)
    flat = np.minimum(var_l, var_s) <= 1e-12 * scale
    return rows.back(np.where(flat, np.nan, np.clip(ratio(product, np.sqrt(np.abs(var_l * var_s))), -1, 1)))


def _same_share(rows: Rows, labels: np.ndarray, ties: TieArrays) -> np.ndarray:
    """Share of tie weight between agents of one label, (R,); agents labelled -1 are left out."""
    marked = Rows(np.where(labels >= 0, labels, np.nan), rows.shape)
    if ties.complete:
        sizes = tally(labels, int(labels.max(initial=0)) + 1)
        return ratio((sizes * (sizes - 1)).sum(axis=1), marked.n * (marked.n - 1))
    return ratio(ties.total(marked, lambda a, b: (a == b).astype(float)), ties.weight(marked))


def sides(rows: Rows) -> np.ndarray:
    """Side of each agent: 0 below the middle of the range, 1 above it, -1 at it or without an opinion."""
    side = np.sign(rows.x - rows.middle)
    return np.where(np.isnan(side) | (side == 0), -1, side > 0).astype(np.int64)


@part("metric", name="same_side_share")
def same_side_share(opinions: ArrayLike, network: Ties, range: Range) -> Measured:
    """Share of ties between agents on the same side of the middle of the range.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent, within the range; NaN if the agent has none.
    network : Network or tuple of arrays
        Who hears whom; ties count with their weight.
    range : (float, float)
        Ends of the opinion scale. An agent exactly in the middle has no side, and its ties are left out.

    Returns
    -------
    float or ndarray (...)
        From 0 to 1; NaN without ties between agents that have a side.

    Raises
    ------
    MeasurementError
        If the range or network is not valid or an opinion lies outside the range.

    Notes
    -----
    - Meaning: ties within a side
    - Formula: ``share of ties with both ends above, or both below, c``
    - Values: 0 to 1
    - Pitfall: report the permutation null, because a lopsided population has many such ties; leaves out neutral agents
    """
    rows = Rows.of(opinions, range)
    return rows.back(_same_share(rows, sides(rows), TieArrays.of(network, rows.x.shape[1])))


@part("metric", name="ei_index")
def ei_index(opinions: ArrayLike, network: Ties, range: Range, groups: ArrayLike | None = None) -> Measured:
    """External minus internal ties over all ties, (E - I) / (E + I).

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent, within the range; NaN if the agent has none.
    network : Network or tuple of arrays
        Who hears whom; ties count with their weight.
    range : (float, float)
        Ends of the opinion scale.
    groups : array_like (N,) or (..., N), optional
        Name of each agent's group; NaN or None where it has none. Default the sides of :func:`same_side_share`; then
        the index is 1 minus twice that share.

    Returns
    -------
    float or ndarray (...)
        From -1, ties within groups only, to 1, ties between groups only; NaN without ties between agents that
        have a group and an opinion.

    Raises
    ------
    MeasurementError
        If an argument is not valid or an opinion lies outside the range.

    Notes
    -----
    - Meaning: ties between groups minus ties within
    - Formula: ``(E - I) / (E + I), sides of c or groups named``
    - Values: -1 to 1
    - Source: Krackhardt & Stern 1988
    - Pitfall: report the permutation null, because without any preference the index still depends on group sizes

    Krackhardt and Stern 1988. Even without any preference, its value depends on group sizes.
    """
    rows = Rows.of(opinions, range)
    labels = sides(rows) if groups is None else numbered(groups, (*rows.shape, rows.x.shape[1]))
    labels = np.where(rows.present, labels, -1)
    return rows.back(1 - 2 * _same_share(rows, labels, TieArrays.of(network, rows.x.shape[1])))


@part("metric", name="active_link_density")
def active_link_density(opinions: ArrayLike, network: Ties, tolerance: float = 0.0) -> Measured:
    """Share of ties whose ends differ in opinion.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent; NaN if the agent has none.
    network : Network or tuple of arrays
        Who hears whom; ties count with their weight.
    tolerance : float
        Largest distance of ends that count as equal; at least 0.

    Returns
    -------
    float or ndarray (...)
        From 0, a frozen state of the voter model, to 1; NaN without ties between agents that have an opinion.

    Raises
    ------
    MeasurementError
        If an argument is not valid or the network has a different number of agents.

    Notes
    -----
    - Meaning: ties between agents that differ
    - Formula: ``share of ties with abs(xi - xj) > tolerance``
    - Values: 0 to 1
    - Pitfall: state the tolerance for continuous opinions
    """
    positive(tolerance, "tolerance", zero=True)
    rows = Rows.of(opinions)
    ties = TieArrays.of(network, rows.x.shape[1])
    if not ties.complete:
        return rows.back(
            ratio(ties.total(rows, lambda a, b: (np.abs(a - b) > tolerance).astype(float)), ties.weight(rows))
        )
    differ = np.zeros(len(rows.x))
    for r, n in enumerate(rows.n):
        x = rows.ordered[r, :n]
        differ[r] = (n - np.searchsorted(x, x + tolerance, side="right")).sum()
    return rows.back(ratio(2 * differ, rows.n * (rows.n - 1)))


@part("metric", name="disagreement")
def disagreement(opinions: ArrayLike, network: Ties) -> Measured:
    r"""Squared differences over ties.

    :math:`\sum_{\{i,j\}} w_{ij} (x_i - x_j)^2`.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent; NaN if the agent has none.
    network : Network or tuple of arrays
        Who hears whom. Each pair counts once, with the mean weight of its two directions.

    Returns
    -------
    float or ndarray (...)
        At least 0, in squared units of opinion; grows with the number of ties. NaN when no agent has an opinion.

    Raises
    ------
    MeasurementError
        If the network is not valid or has a different number of agents.

    Notes
    -----
    - Meaning: squared differences over ties
    - Formula: ``sum over pairs of w (xi - xj)^2``
    - Values: from 0
    - Source: Musco et al. 2018
    - Pitfall: grows with the number of ties
    """
    rows = Rows.of(opinions)
    ties = TieArrays.of(network, rows.x.shape[1])
    if ties.complete:
        return rows.back(np.where(rows.n > 0, rows.n * rows.total(rows.deviations**2), np.nan))
    return rows.back(np.where(rows.n > 0, ties.total(rows, lambda a, b: (a - b) ** 2) / 2, np.nan))


@part("metric", name="polarization")
def polarization(opinions: ArrayLike) -> Measured:
    r"""Squared deviations from the mean.

    :math:`\sum_i (x_i - \bar x)^2`.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent. Agents without an opinion (NaN) are left out.

    Returns
    -------
    float or ndarray (...)
        At least 0, in squared units of opinion; grows with the number of agents. NaN when no agent has an
        opinion.

    Notes
    -----
    - Meaning: squared deviations from the mean
    - Formula: ``sum (x - mean x)^2``
    - Values: from 0
    - Source: Musco et al. 2018
    - Pitfall: grows with n; measures spread and does not show camps

    The polarization of Musco, Musco and Tsourakakis 2018 measures spread and does not distinguish two camps from a
    single wide one.
    """
    rows = Rows.of(opinions)
    return rows.back(np.where(rows.n > 0, rows.total(rows.deviations**2), np.nan))


@part("metric", name="internal_conflict")
def internal_conflict(opinions: ArrayLike, initial: ArrayLike) -> Measured:
    r"""Squared distances of agents from their own initial opinion.

    :math:`\sum_i (x_i - x_i(0))^2`.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent; NaN if the agent has none.
    initial : array_like (N,) or (..., N)
        Initial, or innate, opinion of each agent; agents without one are left out.

    Returns
    -------
    float or ndarray (...)
        At least 0, in squared units of opinion; grows with the number of agents. NaN when no agent has both.

    Raises
    ------
    MeasurementError
        If the shapes do not fit.

    Notes
    -----
    - Meaning: squared distances from agents' own initial opinions
    - Formula: ``sum (x - x0)^2``
    - Values: from 0
    - Source: Chen et al. 2018
    - Pitfall: grows with n
    """
    rows = Rows.of(opinions)
    start, shape = opinion_array(initial), (*rows.shape, rows.x.shape[1])
    try:
        start = np.broadcast_to(start, shape).reshape(rows.x.shape)
    except ValueError:
        raise MeasurementError(f"initial must have shape {shape[-1:]} or {shape}; got {start.shape}") from None
    moved = Rows(rows.x - start, rows.shape)
    return rows.back(np.where(moved.n > 0, moved.total(moved.x**2), np.nan))
