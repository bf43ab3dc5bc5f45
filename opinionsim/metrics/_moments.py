"""Location, scale and shape of opinions: median, skewness, extremeness, bias and diversity relative to the range."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from opinionsim.errors import MeasurementError
from opinionsim.metrics._arrays import Measured, Range, Rows, ratio
from opinionsim.metrics._opinions import check_ddof
from opinionsim.registry import part


@part("metric", name="median")
def median(opinions: ArrayLike) -> Measured:
    """Median opinion.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent. Agents without an opinion (NaN) are left out.

    Returns
    -------
    float or ndarray (...)
        Mean of the two middle opinions if the number of opinions is even; NaN when no agent has an opinion.

    Notes
    -----
    - Meaning: middle opinion
    - Formula: ``median x``
    - Values: a to b
    - Pitfall: jumps if opinions are at few points
    """
    rows = Rows.of(opinions)
    last = np.maximum(rows.n - 1, 0)
    middle = np.stack([last // 2, (last + 1) // 2], axis=1)
    return rows.back(np.take_along_axis(rows.ordered, middle, axis=1).mean(axis=1))


@part("metric", name="skewness")
def skewness(opinions: ArrayLike) -> Measured:
    r"""Asymmetry of the distribution.

    :math:`g_1 = m_3 / m_2^{3/2}` from central moments.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent. Agents without an opinion (NaN) are left out.

    Returns
    -------
    float or ndarray (...)
        Above 0 with a longer tail upwards; NaN if all opinions are equal.

    Notes
    -----
    - Meaning: asymmetry
    - Formula: ``m3 / m2^(3/2), central moments``
    - Values: any
    - Pitfall: biased towards 0 in small samples; undefined at consensus
    """
    rows = Rows.of(opinions)
    second, third = (rows.average(rows.deviations**power) for power in (2, 3))
    return rows.back(ratio(third, second**1.5))


@part("metric", name="relative_bias")
def relative_bias(opinions: ArrayLike, range: Range) -> Measured:
    r"""Distance of the mean from the middle of the range.

    :math:`|\bar x - c| / M`, M half the range.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent, within the range. Agents without an opinion (NaN) are left out.
    range : (float, float)
        Ends of the opinion scale.

    Returns
    -------
    float or ndarray (...)
        From 0 to 1: "bias" in Lorenz et al. 2021 (doi 10.1037/rev0000291); it has no sign.

    Raises
    ------
    MeasurementError
        If the range is not increasing, or an opinion lies outside it.

    Notes
    -----
    - Meaning: distance of the mean from neutral
    - Formula: ``abs(mean x - c) / M``
    - Values: 0 to 1
    - Source: Lorenz et al. 2021
    - Pitfall: has no sign, so its mean over runs is above 0 even without bias
    """
    rows = Rows.of(opinions, range)
    return rows.back(np.abs(rows.mean - rows.middle) / (rows.width / 2))


@part("metric", name="relative_diversity")
def relative_diversity(opinions: ArrayLike, range: Range, ddof: int = 1) -> Measured:
    r"""Standard deviation as a share of half the range.

    :math:`s / M`.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent, within the range. Agents without an opinion (NaN) are left out.
    range : (float, float)
        Ends of the opinion scale.
    ddof : int
        The sum of squares is divided by n - ddof.

    Returns
    -------
    float or ndarray (...)
        At least 0, 1 for two equal poles and ddof=0: "diversity" in Lorenz et al. 2021
        (doi 10.1037/rev0000291). NaN when no more than `ddof` agents have an opinion.

    Raises
    ------
    MeasurementError
        If the range is not increasing, or an opinion lies outside it.

    Notes
    -----
    - Meaning: standard deviation over half the range
    - Formula: ``sd / M, ddof 1``
    - Values: from 0; 1 at equal poles for large n
    - Source: Lorenz et al. 2021
    - Pitfall: ddof is 1 here, 0 in `diversity`
    """
    check_ddof(ddof)
    rows = Rows.of(opinions, range)
    return rows.back(rows.sd(ddof) / (rows.width / 2))


@part("metric", name="extremeness")
def extremeness(opinions: ArrayLike, range: Range) -> Measured:
    r"""Mean distance from the middle of the range.

    :math:`\overline{|x - c|} / M`.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent, within the range. Agents without an opinion (NaN) are left out.
    range : (float, float)
        Ends of the opinion scale.

    Returns
    -------
    float or ndarray (...)
        From 0, if all agents are neutral, to 1, if all are at an end.

    Raises
    ------
    MeasurementError
        If the range is not increasing, or an opinion lies outside it.

    Notes
    -----
    - Meaning: mean distance from neutral
    - Formula: ``mean abs(x - c) / M``
    - Values: 0 to 1
    """
    rows = Rows.of(opinions, range)
    return rows.back(rows.average(np.abs(rows.x - rows.middle)) / (rows.width / 2))


@part("metric", name="extreme_share")
def extreme_share(opinions: ArrayLike, range: Range, threshold: float = 0.9) -> Measured:
    r"""Share of agents near an end.

    :math:`|x - c| > \theta M`.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent, within the range. Agents without an opinion (NaN) are left out.
    range : (float, float)
        Ends of the opinion scale.
    threshold : float
        Theta above, from 0 to below 1.

    Returns
    -------
    float or ndarray (...)
        From 0 to 1.

    Raises
    ------
    MeasurementError
        If the threshold or the range is not valid, or an opinion lies outside the range.

    Notes
    -----
    - Meaning: share near an end
    - Formula: ``share with abs(x - c) > 0.9 M``
    - Values: 0 to 1
    - Pitfall: on a scale with few points this is the share at the end points
    """
    if not 0 <= threshold < 1:
        raise MeasurementError(f"threshold must be from 0 to below 1; got {threshold!r}")
    rows = Rows.of(opinions, range)
    return rows.back(rows.average(np.abs(rows.x - rows.middle) > threshold * rows.width / 2))
