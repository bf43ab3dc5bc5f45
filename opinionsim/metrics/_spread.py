"""Width of opinion distributions: spread, dispersion, coverage, gaps, mean distance of pairs and entropy."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from opinionsim.metrics._arrays import Measured, Range, Rows, positive, ratio
from opinionsim.registry import part


@part("metric", name="spread")
def spread(opinions: ArrayLike) -> Measured:
    """Largest minus smallest opinion.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent. Agents without an opinion (NaN) are left out.

    Returns
    -------
    float or ndarray (...)
        In units of opinion; NaN when no agent has an opinion.

    Notes
    -----
    - Meaning: largest minus smallest opinion
    - Formula: ``max x - min x``
    - Values: 0 to b - a
    - Source: Bramson et al. 2016
    - Pitfall: depends on two agents only; grows with n

    Sense 1 of Bramson et al. 2016.
    """
    rows = Rows.of(opinions)
    return rows.back(rows.spread)


@part("metric", name="dispersion")
def dispersion(opinions: ArrayLike, range: Range) -> Measured:
    r"""Mean absolute deviation over its largest possible value.

    :math:`2\,\overline{|x - \bar x|} / (b - a)`.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent, within the range. Agents without an opinion (NaN) are left out.
    range : (float, float)
        Ends a, b of the opinion scale.

    Returns
    -------
    float or ndarray (...)
        From 0, consensus, to 1, two equal poles at the ends.

    Raises
    ------
    MeasurementError
        If the range is not increasing, or an opinion lies outside it.

    Notes
    -----
    - Meaning: mean absolute deviation
    - Formula: ``2 mean abs(x - mean x) / (b - a)``
    - Values: 0 to 1
    - Source: Bramson et al. 2016
    - Pitfall: cannot distinguish two camps from a single wide one

    Sense 2 of Bramson et al. 2016.
    """
    rows = Rows.of(opinions, range)
    return rows.back(2 * rows.average(np.abs(rows.deviations)) / rows.width)


@part("metric", name="coverage")
def coverage(opinions: ArrayLike, range: Range) -> Measured:
    r"""Share of the range that opinions occupy, each as an interval of width (b - a) / n around it.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent, within the range. Agents without an opinion (NaN) are left out.
    range : (float, float)
        Ends a, b of the opinion scale; intervals are cut off there.

    Returns
    -------
    float or ndarray (...)
        Length of the union of the intervals, divided by b - a: 1 for n opinions in the middles of n equal parts,
        1/n for a consensus away from the ends. The opinions .2, .9, .9, .9 on 0 to 1 give .475.

    Raises
    ------
    MeasurementError
        If the range is not increasing, or an opinion lies outside it.

    Notes
    -----
    - Meaning: share of the range that is occupied
    - Formula: ``union of intervals of width (b - a)/n around opinions, cut at the ends, over b - a``
    - Values: 0 to 1
    - Source: Bramson et al. 2016
    - Pitfall: compare runs of equal n only; ratings on k points cover at most about k/n

    Sense 3 of Bramson et al. 2016.
    """
    rows = Rows.of(opinions, range)
    half = ratio(np.full(len(rows.x), rows.width / 2), rows.n)[:, None]
    # Intervals have one width, so they start and end in the order of their centres: each counts from the last end.
    start = np.maximum(rows.ordered - half, rows.low)
    end = np.minimum(rows.ordered + half, rows.high)
    start[:, 1:] = np.maximum(start[:, 1:], end[:, :-1])
    return rows.back(np.where(rows.n > 0, np.nansum(end - start, axis=1) / rows.width, np.nan))


@part("metric", name="regionalization")
def regionalization(opinions: ArrayLike, range: Range, gap: float | None = None) -> Measured:
    """Number of empty stretches between opinions.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent, within the range. Agents without an opinion (NaN) are left out.
    range : (float, float)
        Ends of the opinion scale.
    gap : float, optional
        Neighbouring opinions further apart than this leave an empty stretch. With the default, range / n, the empty
        stretches are the gaps between the parts that :func:`coverage` counts as occupied.

    Returns
    -------
    float or ndarray (...)
        0, 1, 2, ...; NaN when no agent has an opinion.

    Raises
    ------
    MeasurementError
        If the gap or the range is not valid, or an opinion lies outside the range.

    Notes
    -----
    - Meaning: empty stretches between opinions
    - Formula: ``number of gaps wider than (b - a)/n``
    - Values: 0, 1, 2, ...
    - Source: Bramson et al. 2016
    - Pitfall: compare runs of equal n, or state `gap`

    After sense 4 of Bramson et al. 2016.
    """
    rows = Rows.of(opinions, range)
    limit = (
        ratio(np.full(len(rows.x), rows.width), rows.n) if gap is None else np.full(len(rows.x), positive(gap, "gap"))
    )
    # Opinions spaced evenly at the limit leave no gap, even if distances are rounded up.
    empty = np.count_nonzero(rows.gaps > limit[:, None] * (1 + 1e-9), axis=1)
    return rows.back(np.where(rows.n > 0, empty, np.nan))


@part("metric", name="mean_distance")
def mean_distance(opinions: ArrayLike) -> Measured:
    r"""Mean distance between the opinions of two agents.

    :math:`\frac{2}{n(n-1)}\sum_{i<j} |x_i - x_j|`.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent. Agents without an opinion (NaN) are left out.

    Returns
    -------
    float or ndarray (...)
        In units of opinion; NaN for fewer than two opinions. Half of it, divided by the mean, is the Gini coefficient.

    Notes
    -----
    - Meaning: mean distance of two agents
    - Formula: ``mean abs(xi - xj) over pairs i < j``
    - Values: 0 to b - a
    - Pitfall: cannot distinguish two camps from a single wide one

    The function takes O(N log N): it sorts the opinions, and the gap after the k-th counts for k (n - k) pairs.
    """
    rows = Rows.of(opinions)
    below = np.arange(1, rows.x.shape[1])
    pairs = below * (rows.n[:, None] - below)
    return rows.back(ratio(2 * np.nansum(rows.gaps * pairs, axis=1), rows.n * (rows.n - 1)))


@part("metric", name="entropy")
def entropy(opinions: ArrayLike, range: Range, bins: int = 5, normalised: bool = False) -> Measured:
    r"""Shannon entropy of the histogram.

    :math:`-\sum_b p_b \ln p_b`.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent, within the range. Agents without an opinion (NaN) are left out.
    range : (float, float)
        Ends of the opinion scale, between which the bins lie.
    bins : int
        Number K of equal-width bins b, at least 2: k for a scale of k points.
    normalised : bool
        Whether to divide by :math:`\ln K`, the entropy of equally full bins.

    Returns
    -------
    float or ndarray (...)
        0 if all opinions are in one bin; ln K (1 if normalised) if bins are equally full. NaN when no agent has an
        opinion.

    Raises
    ------
    MeasurementError
        If the number of bins is not valid or an opinion lies outside the range.

    Notes
    -----
    - Meaning: how evenly opinions fill the range
    - Formula: ``-sum over bins of p ln p; over ln bins if normalised``
    - Values: 0 to ln bins, or to 1
    - Source: Shannon 1948
    - Pitfall: depends on the number of bins, so report it; ignores how far apart full bins are; n agents reach at most
      ln n

    Shannon 1948, in nats; divide by ln 2 to get bits.
    """
    rows = Rows.of(opinions, range)
    shares = ratio(rows.counts(bins), rows.n[:, None])
    found = -(shares * np.log(np.where(shares > 0, shares, 1.0))).sum(axis=1)
    # A sum of one term is -0.
    return rows.back(np.abs(found) / (np.log(bins) if normalised else 1.0))
