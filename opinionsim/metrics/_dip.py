"""Hartigan's dip: the distance of a sample from the closest unimodal distribution."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from opinionsim.errors import MeasurementError, whole_number
from opinionsim.foundation.compilation import compiled, inlined
from opinionsim.foundation.streams import stream
from opinionsim.metrics._arrays import Measured, Rows
from opinionsim.registry import part

#: Values of uniform samples that are held at a time.
_BATCH = 1_000_000


@inlined
def _hull(x: Any, y: Any, first: int, last: int, sign: float, contact: Any) -> int:
    """Corners of the greatest convex minorant (sign 1) or least concave majorant (-1) of points first..last.

    Writes their indices to `contact` and returns their number.
    """
    size = 0
    for k in range(first, last + 1):
        while size > 1:
            a, b = contact[size - 2], contact[size - 1]
            if sign * ((y[b] - y[a]) * (x[k] - x[a]) - (y[k] - y[a]) * (x[b] - x[a])) < 0:
                break
            size -= 1
        contact[size] = k
        size += 1
    return size


@inlined
def _dip_of_row(row: Any, n: int, x: Any, low: Any, high: Any, minor: Any, major: Any) -> float:
    """Dip of the first n values of an increasing row; the arrays are work space."""
    # Distinct values and the share of the sample below, and at or below, each of them.
    size = 0
    for k in range(n):
        if size == 0 or row[k] != x[size - 1]:
            x[size] = row[k]
            low[size] = k / n
            size += 1
        high[size - 1] = (k + 1) / n
    start, end, twice = 0, size - 1, 0.0
    while start < end:
        n_minor = _hull(x, low, start, end, 1.0, minor)
        n_major = _hull(x, high, start, end, -1.0, major)
        # The two hulls are furthest apart at a corner of one of them; the modal interval shrinks to it.
        widest, left, right = -1.0, start, end
        j = 0
        for i in range(n_minor):
            g = minor[i]
            while major[j + 1 if j + 1 < n_major else j] < g:
                j += 1
            # major[j] < g <= major[j + 1], or g is the first point.
            upper = major[j] if major[j] >= g else major[j + 1]
            a = major[j]
            level = high[g] if upper == g else high[a] + (high[upper] - high[a]) * (x[g] - x[a]) / (x[upper] - x[a])
            if level - low[g] > widest:
                widest, left, right = level - low[g], g, upper
        i = 0
        for j in range(n_major):
            m = major[j]
            while i + 1 < n_minor and minor[i + 1] <= m:
                i += 1
            # minor[i] <= m < minor[i + 1], or m is the last point.
            a = minor[i]
            level = low[m]
            if a != m:
                b = minor[i + 1]
                level = low[a] + (low[b] - low[a]) * (x[m] - x[a]) / (x[b] - x[a])
            if high[m] - level > widest:
                widest, left, right = high[m] - level, a, m
        if widest <= twice:
            break
        # Outside the modal interval the distribution has to be convex before, and concave after.
        i = 0
        for k in range(start, left):
            while minor[i + 1] <= k:
                i += 1
            a, b = minor[i], minor[i + 1]
            twice = max(twice, high[k] - low[a] - (low[b] - low[a]) * (x[k] - x[a]) / (x[b] - x[a]))
        j = 0
        for k in range(right + 1, end + 1):
            while major[j + 1] < k:
                j += 1
            a, b = major[j], major[j + 1]
            twice = max(twice, high[a] + (high[b] - high[a]) * (x[k] - x[a]) / (x[b] - x[a]) - low[k])
        if left == start and right == end:
            break
        start, end = left, right
    return twice / 2


def _dips(ordered: Any, n: Any, found: Any, x: Any, low: Any, high: Any, minor: Any, major: Any) -> None:
    """Write to `found` the dip of the first n[r] values of every row r of increasing values."""
    for r in range(found.size):
        if n[r] > 0:
            found[r] = _dip_of_row(ordered[r], n[r], x, low, high, minor, major)


def _dip_rows(ordered: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Dips of sorted rows (R, N), of which the first n[r] values count; NaN where none does."""
    found = np.full(len(ordered), np.nan)
    size = ordered.shape[1]
    shares = np.empty((3, size))
    corners = np.empty((2, size), dtype=np.int64)
    compiled(_dips)(np.ascontiguousarray(ordered), n, found, *shares, *corners)
    return found


@part("metric", name="dip")
def dip(opinions: ArrayLike) -> Measured:
    r"""Dip statistic, the distance from every unimodal distribution.

    :math:`\min_G \sup_x |F_n(x) - G(x)|` over all unimodal distributions G.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent. Agents without an opinion (NaN) are left out.

    Returns
    -------
    float or ndarray (...)
        From 0, consensus, to 1/4, two equal point masses; at least 1/(2n) for n > 1 distinct opinions. NaN when
        no agent has an opinion.

    Notes
    -----
    - Meaning: distance from every unimodal distribution
    - Formula: ``min over unimodal G of max abs(F - G)``
    - Values: 0 to 1/4
    - Source: Hartigan & Hartigan 1985
    - Pitfall: its p-value is for continuous opinions; ratings on few points count as many modes

    Hartigan and Hartigan 1985. G may have a point mass at its mode, so equal opinions there do not raise the dip. Equal
    opinions elsewhere raise it by half their share.
    """
    rows = Rows.of(opinions)
    return rows.back(_dip_rows(rows.ordered, rows.n))


def _null_dips(n: int, n_null: int, seed: int) -> np.ndarray:
    """Dips of uniform samples of n values, (n_null,); drawn in portions, which are the same draws in a row."""
    draw = stream(seed, "dip null", 0, n)
    portion = max(1, _BATCH // n)
    sizes = [min(portion, n_null - first) for first in range(0, n_null, portion)]
    dips = []
    for size in sizes:
        samples = draw.random((size, n))
        samples.sort(axis=1)
        dips.append(_dip_rows(samples, np.full(size, n)))
    return np.concatenate(dips)


def dip_p_value(opinions: ArrayLike, n_null: int = 2000, seed: int = 0) -> Measured:
    """p-value of the dip: share of uniform samples of the same size with a dip at least as large.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent. Agents without an opinion (NaN) are left out.
    n_null : int
        Uniform samples to draw for each sample size that occurs.
    seed : int
        Seed of these samples, >= 0.

    Returns
    -------
    float or ndarray (...)
        (1 + number of samples with a dip at least as large) / (1 + n_null). NaN for fewer than four opinions.

    Raises
    ------
    MeasurementError
        If `n_null` is not a whole number above 0.

    Notes
    -----
    The uniform distribution is the least favourable unimodal one asymptotically (Hartigan and Hartigan 1985, doi
    10.1214/aos/1176346577). Use the test for continuous opinions only: ratings on a few points have ties, which alone
    make p-values small.
    """
    whole_number("n_null", n_null, 1, MeasurementError)
    rows = Rows.of(opinions)
    observed = _dip_rows(rows.ordered, rows.n)
    found = np.full(len(observed), np.nan)
    for n in np.unique(rows.n[rows.n >= 4]):
        null = np.sort(_null_dips(int(n), n_null, seed))
        chosen = rows.n == n
        # Dips that differ by rounding alone count as equal.
        below = np.searchsorted(null, observed[chosen] - 1e-12, side="left")
        found[chosen] = (1 + n_null - below) / (1 + n_null)
    return rows.back(found)
