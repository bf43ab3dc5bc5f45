"""Clusters of opinions: groups that gaps wider than a stated distance separate."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from opinionsim.metrics._arrays import Measured, Rows, positive, ratio
from opinionsim.registry import part

#: Number of agents from which opinions are put into cells instead of sorted, which takes a third of the time.
_MANY = 1024


def _sizes(rows: Rows, delta: float) -> np.ndarray:
    """Agents in each cluster, (R, most clusters); 0 for those that a row has not."""
    if rows.x.shape[1] >= _MANY and positive(delta, "delta", zero=True) > 0:
        found = [_sizes_by_cell(x[here], delta) for x, here in zip(rows.x, rows.present, strict=True)]
        most = max((each.size for each in found), default=1)
        sizes = np.zeros((len(found), most), dtype=np.int64)
        for row, each in zip(sizes, found, strict=True):
            row[: each.size] = each
        return sizes
    # Whether a gap between clusters follows each opinion in order but the last, (R, N - 1).
    breaks = np.asarray(rows.gaps > positive(delta, "delta", zero=True))
    # Along one axis, since along two numpy takes five times as long.
    row, before = np.divmod(np.flatnonzero(breaks), max(1, breaks.shape[1]))
    most = int(np.bincount(row).max(initial=0)) + 1
    ends = np.repeat(rows.n[:, None], most, axis=1)
    ends[row, np.arange(row.size) - np.searchsorted(row, row)] = before + 1
    return np.diff(ends, axis=1, prepend=0)


def _sizes_by_cell(x: np.ndarray, delta: float) -> np.ndarray:
    """Agents in each cluster of opinions (N,), from low to high; no gap wider than `delta` fits into a cell."""
    if not x.size:
        return np.zeros(1, dtype=np.int64)
    low, width = x.min(), 0.999 * delta
    if not x.max() - low <= width * x.size:
        ends = np.flatnonzero(np.diff(np.sort(x)) > delta) + 1
        return np.diff(ends, prepend=0, append=x.size)
    cell = ((x - low) / width).astype(np.int64)
    counts = np.bincount(cell)
    lows, highs = np.full(counts.size, np.inf), np.full(counts.size, -np.inf)
    np.minimum.at(lows, cell, x)
    np.maximum.at(highs, cell, x)
    taken = np.flatnonzero(counts)
    begins = np.flatnonzero(lows[taken[1:]] - highs[taken[:-1]] > delta) + 1
    return np.add.reduceat(counts[taken], np.concatenate([[0], begins]))


@part("metric", name="clusters")
def clusters(opinions: ArrayLike, delta: float = 0.01) -> Measured:
    """Number of clusters, however small.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent. Agents without an opinion (NaN) are left out.
    delta : float
        Largest gap between neighbouring opinions of one cluster, in units of opinion.

    Returns
    -------
    float or ndarray (...)
        At least 1; NaN when no agent has an opinion.

    Notes
    -----
    - Meaning: clusters of opinion, however small
    - Formula: ``1 + number of gaps between neighbouring opinions > delta``
    - Values: 1 to n
    - Pitfall: state delta; each single straggler counts as a cluster
    """
    rows = Rows.of(opinions)
    found = np.count_nonzero(_sizes(rows, delta), axis=1)
    return rows.back(np.where(rows.n > 0, found, np.nan))


@part("metric", name="effective_clusters")
def effective_clusters(opinions: ArrayLike, delta: float = 0.01) -> Measured:
    r"""Number of equal clusters with the same concentration.

    :math:`(\sum_k c_k)^2 / \sum_k c_k^2`.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent. Agents without an opinion (NaN) are left out.
    delta : float
        Largest gap between neighbouring opinions of one cluster, in units of opinion.

    Returns
    -------
    float or ndarray (...)
        From 1 to the number of clusters; NaN when no agent has an opinion.

    Notes
    -----
    - Meaning: clusters weighted by size
    - Formula: ``(sum c)^2 / sum c^2, cluster sizes c``
    - Values: 1 to n
    - Source: Laakso & Taagepera 1979
    - Pitfall: state delta

    The effective number of Laakso and Taagepera 1979 for clusters of size c.
    """
    rows = Rows.of(opinions)
    return rows.back(ratio(rows.n.astype(float) ** 2, (_sizes(rows, delta).astype(float) ** 2).sum(axis=1)))


@part("metric", name="largest_cluster")
def largest_cluster(opinions: ArrayLike, delta: float = 0.01) -> Measured:
    """Share of agents in the largest cluster.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent. Agents without an opinion (NaN) are left out.
    delta : float
        Largest gap between neighbouring opinions of one cluster, in units of opinion.

    Returns
    -------
    float or ndarray (...)
        From 1/n to 1; NaN when no agent has an opinion.

    Notes
    -----
    - Meaning: share of the largest cluster
    - Formula: ``max c / n``
    - Values: 1/n to 1
    - Pitfall: state delta
    """
    rows = Rows.of(opinions)
    return rows.back(ratio(_sizes(rows, delta).max(axis=1), rows.n))
