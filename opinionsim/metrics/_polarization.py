"""Indices of polarization: how far opinions form two opposed camps."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from opinionsim.errors import MeasurementError
from opinionsim.metrics._arrays import Measured, Range, Rows, positive, ratio
from opinionsim.metrics._kernel_density import density
from opinionsim.registry import part


@part("metric", name="esteban_ray")
def esteban_ray(opinions: ArrayLike, range: Range, alpha: float = 1.6, bins: int = 5) -> Measured:
    r"""Polarization of Esteban and Ray.

    :math:`K \sum_{ij} p_i^{1+\alpha} p_j |y_i - y_j|`.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent, within the range. Agents without an opinion (NaN) are left out.
    range : (float, float)
        Ends of the opinion scale, mapped to 0 and 1.
    alpha : float
        Weight of identification within a camp, above 0 and at most 1.6.
    bins : int
        Equal-width bins, the first placed at 0 and the last at 1: k for a scale of k points.

    Returns
    -------
    float or ndarray (...)
        0 for consensus, 1 for two equal poles at the ends: :math:`K = 2^{1+\alpha}`. NaN when no agent has an
        opinion.

    Raises
    ------
    MeasurementError
        If an argument is not valid or an opinion lies outside the range.

    Notes
    -----
    - Meaning: camps that are large and far apart
    - Formula: ``2^(1+alpha) sum p_i^(1+alpha) p_j abs(y_i - y_j) over bins, y from 0 to 1``
    - Values: from 0; 1 at equal poles
    - Source: Esteban & Ray 1994
    - Pitfall: depends on the number of bins, so report it; use k for a scale of k points

    Esteban and Ray 1994. The value depends on the bins.
    """
    if not 0 < alpha <= 1.6:
        raise MeasurementError(f"alpha of Esteban and Ray must be above 0 and at most 1.6; got {alpha!r}")
    rows = Rows.of(opinions, range)
    shares = ratio(rows.counts(bins), rows.n[:, None])
    place = np.linspace(0, 1, bins)
    # Not a product of matrices, whose last bit depends on the number of rows.
    distance = (shares[:, :, None] * np.abs(place[:, None] - place)).sum(axis=1)
    return rows.back(2 ** (1 + alpha) * (shares ** (1 + alpha) * distance).sum(axis=1))


@part("metric", name="duclos_esteban_ray")
def duclos_esteban_ray(opinions: ArrayLike, range: Range, alpha: float = 1.0, bandwidth: float = 0.05) -> Measured:
    r"""Continuous polarization.

    :math:`\frac{1}{n} \sum_i \hat f(y_i)^{\alpha}\, \frac{1}{n} \sum_j |y_i - y_j|`.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent, within the range. Agents without an opinion (NaN) are left out.
    range : (float, float)
        Ends of the opinion scale, mapped to 0 and 1.
    alpha : float
        Weight of identification within a camp, from 0.25 to 1.
    bandwidth : float
        Standard deviation of the Gaussian kernel, as a share of the range.

    Returns
    -------
    float or ndarray (...)
        At least 0. The upper bound depends on the bandwidth, so report it.

    Raises
    ------
    MeasurementError
        If an argument is not valid or an opinion lies outside the range.

    Notes
    -----
    - Meaning: camps that are large and far apart, for continuous opinions
    - Formula: ``mean over i of f(y_i)^alpha mean over j of abs(y_i - y_j), y from 0 to 1``
    - Values: from 0
    - Source: Duclos et al. 2004
    - Pitfall: with point masses it gets as large as the bandwidth allows; density beyond the ends is lost

    Duclos, Esteban and Ray 2004. The density is interpolated linearly on a grid of a tenth of the bandwidth.
    """
    if not 0.25 <= alpha <= 1:
        raise MeasurementError(f"alpha of Duclos, Esteban and Ray must be from 0.25 to 1; got {alpha!r}")
    rows = Rows.of(opinions, range)
    unit = Rows((rows.ordered - rows.low) / rows.width, rows.shape, 0.0, 1.0)
    grid, values = density(unit.x, (0.0, 1.0), positive(bandwidth, "bandwidth"))
    position = np.where(unit.present, unit.x, 0.0) * (len(grid) - 1)
    left = np.minimum(position.astype(np.int64), len(grid) - 2)
    weight = position - left
    low, high = (np.take_along_axis(values, left + side, axis=1) for side in (0, 1))
    return rows.back(unit.average((low + weight * (high - low)) ** alpha * _alienation(unit)))


def _alienation(rows: Rows) -> np.ndarray:
    """Mean distance of each agent to all agents, itself included, with opinions in order, (R, N)."""
    values = np.where(rows.present, rows.x, 0.0)
    before = np.cumsum(values, axis=1)
    rank = np.arange(1, values.shape[1] + 1)
    distance = values * (2 * rank - rows.n[:, None]) - 2 * before + before[:, -1:]
    return ratio(np.where(rows.present, np.maximum(distance, 0), 0.0), rows.n[:, None])


@part("metric", name="bimodality")
def bimodality(opinions: ArrayLike) -> Measured:
    r"""Bimodality coefficient.

    :math:`\frac{G_1^2 + 1}{G_2 + 3(n-1)^2 / ((n-2)(n-3))}`.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent. Agents without an opinion (NaN) are left out.

    Returns
    -------
    float or ndarray (...)
        From sample skewness and excess kurtosis, both corrected for bias. Near 1 for two equal poles, 5/9 for a
        uniform distribution, about 1/3 for a normal one. NaN for fewer than four opinions, or if all are equal.

    Notes
    -----
    - Meaning: bimodality coefficient
    - Formula: ``(G1^2 + 1) / (G2 + 3(n-1)^2/((n-2)(n-3))), sample skewness and excess kurtosis``
    - Values: 0 to 1; uniform 5/9
    - Source: Pfister et al. 2013
    - Pitfall: unreliable for a few point masses, such as integer ratings, and for skewed opinions; check `dip` too

    Pfister et al. 2013. A value above 5/9 suggests two modes, but skewed unimodal distributions and ratings on few
    points can reach it too. Check :func:`dip` or the histogram.
    """
    rows = Rows.of(opinions)
    n = np.where(rows.n > 3, rows.n, 4).astype(float)
    second, third, fourth = (rows.average(rows.deviations**power) for power in (2, 3, 4))
    skew = ratio(third, second**1.5) * np.sqrt(n * (n - 1)) / (n - 2)
    excess = (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * (ratio(fourth, second**2) - 3) + 6)
    found = (skew**2 + 1) / (excess + 3 * (n - 1) ** 2 / ((n - 2) * (n - 3)))
    return rows.back(np.where(rows.n > 3, found, np.nan))


@part("metric", name="agreement")
def agreement(opinions: ArrayLike, range: Range, bins: int = 5) -> Measured:
    r"""Agreement A of van der Eijk on an ordered scale.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent, within the range. Agents without an opinion (NaN) are left out.
    range : (float, float)
        Ends of the opinion scale.
    bins : int
        Number K of equal-width bins, one for each point of the scale; at least 3.

    Returns
    -------
    float or ndarray (...)
        1 when all are in one bin, 0 when bins are equally full, -1 for two equal poles at the ends. NaN when no
        agent has an opinion.

    Raises
    ------
    MeasurementError
        If an argument is not valid or an opinion lies outside the range.

    Notes
    -----
    - Meaning: agreement on an ordered scale
    - Formula: ``mean over layers of the histogram of U (1 - (S - 1)/(K - 1))``
    - Values: -1 equal poles, 0 uniform, 1 one bin
    - Source: van der Eijk 2001
    - Pitfall: ordinal, so it jumps when agents move to a neighbouring bin; the bins must be the points of the scale

    The histogram is cut into layers of equal height. A layer with S filled bins has :math:`A = U (1 - (S - 1)/(K -
    1))`, :math:`U = \frac{(K-2) T_U - (K-1) T_D}{(K-2)(T_U + T_D)}`, with the numbers of triples of bins filled as
    110 or 011 (:math:`T_U`) and 101 (:math:`T_D`), U = 1 without either. A is the mean over layers weighted by the
    agents in them: van der Eijk 2001.
    """
    rows = Rows.of(opinions, range)
    counts = rows.counts(bins, 3).astype(float)
    tops = np.sort(counts, axis=1)
    heights = np.diff(tops, axis=1, prepend=0.0)
    # Bins that reach through each layer, (R, layers, bins).
    filled = counts[:, None, :] >= tops[:, :, None]
    size = filled.sum(axis=2)
    before: np.ndarray = np.cumsum(filled, axis=2) - filled
    after = size[:, :, None] - before - filled
    empty_before = np.arange(bins) - before
    empty_after = (bins - 1 - np.arange(bins)) - after
    unimodal = np.where(filled, before * empty_after + empty_before * after, 0).sum(axis=2)
    deviating = np.where(filled, 0, before * after).sum(axis=2)
    triples = (bins - 2) * (unimodal + deviating)
    u = np.where(triples > 0, ((bins - 2) * unimodal - (bins - 1) * deviating) / np.maximum(triples, 1), 1.0)
    layer = u * (1 - (size - 1) / (bins - 1))
    return rows.back(ratio((layer * heights * size).sum(axis=1), rows.n))


@part("metric", name="opinion_polarization_index")
def opinion_polarization_index(opinions: ArrayLike, range: Range) -> Measured:
    r"""Polarization index weighted by expert judgements, on five ordered categories.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent, within the range. Agents without an opinion (NaN) are left out.
    range : (float, float)
        Ends of the opinion scale, cut into five equal bins.

    Returns
    -------
    float or ndarray (...)
        :math:`(2.14\, n_2 n_4 + 2.70 (n_1 n_4 + n_2 n_5) + 3.96\, n_1 n_5) / (0.0099\, n^2)`: 0 without pairs on
        opposite sides, 100 for two equal poles at the ends. NaN when no agent has an opinion.

    Raises
    ------
    MeasurementError
        If the range is not increasing, or an opinion lies outside it.

    Notes
    -----
    - Meaning: polarization as experts rate it
    - Formula: ``(2.14 n2 n4 + 2.70 (n1 n4 + n2 n5) + 3.96 n1 n5) / (0.0099 n^2)``
    - Values: 0 to 100
    - Source: Koudenburg et al. 2021
    - Pitfall: made for five-point scales; agents in the neutral category count only through the total n

    Koudenburg, Kiers and Kashima 2021: the weights come from 58 experts who rated distributions on a scale of five
    points. They did not rate other scales cut into five bins.
    """
    rows = Rows.of(opinions, range)
    one, two, _, four, five = rows.counts(5).T
    pairs = 2.14 * two * four + 2.70 * (one * four + two * five) + 3.96 * one * five
    return rows.back(ratio(pairs, 0.0099 * rows.n**2))
