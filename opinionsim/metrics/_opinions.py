"""Metrics of one distribution of opinions: bias, diversity and shares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from opinionsim.errors import MeasurementError
from opinionsim.metrics._arrays import Measured, Rows, opinion_array
from opinionsim.opinions import OpinionScale
from opinionsim.registry import part


@part("metric", name="bias")
def bias(opinions: ArrayLike) -> Measured:
    r"""Mean opinion.

    :math:`B = \frac{1}{n}\sum_i o_i`.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent; NaN if the agent has none. Agents with NaN are left out and never count as neutral; n
        counts the other agents (:func:`distribution` gives both counts).

    Returns
    -------
    float or ndarray (...)
        Within the scale; NaN when no agent has an opinion.

    Notes
    -----
    - Meaning: mean opinion
    - Formula: ``mean x``
    - Values: a to b
    - Source: Chuang et al. 2024
    - Pitfall: not the `bias` of Lorenz et al., which is `relative_bias`

    Chuang et al. 2023, §4 (A13).
    """
    values = opinion_array(opinions, empty=True)
    if values.ndim == 1:
        present = values[~np.isnan(values)]
        return float(present.mean()) if present.size else float("nan")
    rows = Rows.of(values)
    return rows.back(rows.mean)


@part("metric", name="diversity")
def diversity(opinions: ArrayLike, ddof: int = 0) -> Measured:
    r"""Standard deviation of opinions.

    :math:`D = \sqrt{\frac{1}{n - d}\sum_i (o_i - B)^2}`.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion per agent. Agents without an opinion (NaN) are left out.
    ddof : int
        d above, at least 0. The default 0 is the convention of the published tables. For a uniform start of ten agents,
        the paper's text gives 1.49, which uses 1; 0 gives 1.41.

    Returns
    -------
    float or ndarray (...)
        At least 0; NaN when no more than `ddof` agents have an opinion.

    Notes
    -----
    - Meaning: SD of opinions over agents
    - Formula: ``(sum (x - mean x)^2 / (n - ddof))^(1/2)``
    - Values: from 0
    - Source: Chuang et al. 2024
    - Pitfall: ddof is 0 as in the published tables; other sources divide by n - 1

    Chuang et al. 2023, §4 (A13).
    """
    check_ddof(ddof)
    values = opinion_array(opinions, empty=True)
    if values.ndim == 1:
        present = values[~np.isnan(values)]
        return float(present.std(ddof=ddof)) if present.size > ddof else float("nan")
    rows = Rows.of(values)
    return rows.back(rows.sd(ddof))


def check_ddof(ddof: int) -> None:
    """Refuse a correction that is not a whole number of at least 0."""
    if ddof < 0 or ddof != int(ddof):
        raise MeasurementError(f"ddof must be a whole number, at least 0; got {ddof!r}")


def nearest_points(values: np.ndarray, scale: OpinionScale) -> np.ndarray:
    """Position of the closest scale point for each value, shape (n,); ties go to the point nearer to neutral."""
    order = np.lexsort((scale.values, np.abs(scale.values - scale.neutral)))
    return np.asarray(order[np.argmin(np.abs(values[:, None] - scale.values[order]), axis=1)])


@dataclass(frozen=True, slots=True)
class Distribution:
    """Number of agents at each scale point.

    Attributes
    ----------
    points : ndarray (k,)
        The scale points, increasing.
    counts : ndarray (k,)
        Number of agents at each point; a value between points counts for the closest one.
    shares : ndarray (k,)
        Counts as fractions of the agents that have an opinion; NaN when none has.
    n : int
        Agents that have an opinion.
    n_missing : int
        Agents that have none (NaN).
    """

    points: np.ndarray
    counts: np.ndarray
    shares: np.ndarray
    n: int
    n_missing: int


def distribution(opinions: ArrayLike, scale: OpinionScale | None = None) -> Distribution:
    """Empirical distribution of opinions over the scale, F of Chuang et al. 2023, §3 (A1).

    Parameters
    ----------
    opinions : array_like (N,)
        One opinion per agent; NaN if the agent has none.
    scale : OpinionScale, optional
        Default -2, -1, 0, 1, 2.

    Returns
    -------
    Distribution
        Counts and shares over the k points, and how many agents have no opinion.
    """
    scale = OpinionScale() if scale is None else scale
    values = opinion_array(opinions, empty=True)
    if values.ndim != 1:
        raise MeasurementError(f"opinions must have one dimension, one value per agent; got shape {values.shape}")
    present = values[~np.isnan(values)]
    counts = np.bincount(nearest_points(present, scale), minlength=len(scale))
    shares = counts / present.size if present.size else np.full(len(scale), np.nan)
    return Distribution(scale.values, counts, shares, int(present.size), int(values.size - present.size))
