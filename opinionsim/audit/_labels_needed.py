"""Number of labels that an audit needs."""

from __future__ import annotations

import math

from opinionsim.analysis import least
from opinionsim.errors import SpecError


def half_width(labels: int, noise: float = 0.3, points: int = 5, level: float = 0.95) -> float:
    r"""Compute the half-width of a corrected contrast of two mean opinions, given the number of labels.

    :math:`t_{2n-2} \sqrt{2 \sigma^2 / n}` for n labels in each condition. An instrument that reads a share of the texts
    as random points has errors with the variance :math:`\sigma^2 =` `noise` :math:`(k^2 - 1) / 6`, if true opinions
    take all k points equally often. This is the contribution of the audit; the runs add their own variance.

    Parameters
    ----------
    labels : int
        Labels per condition, at least 2.
    noise : float
        Share of random readings, in [0, 1].
    points : int
        Number of consecutive points of the scale.
    level : float
        Level of the interval.

    Raises
    ------
    SpecError
        If an argument is out of range.
    """
    from scipy.stats import t

    if labels < 2 or points < 2 or not 0 < noise <= 1 or not 0 < level < 1:
        raise SpecError(
            "labels and points must be at least 2, noise above 0 and at most 1, and level between 0 and 1; "
            f"got {labels}, {points}, {noise}, {level}"
        )
    variance = noise * (points**2 - 1) / 6
    return float(t.ppf((1 + level) / 2, 2 * labels - 2) * math.sqrt(2 * variance / labels))


def plan(target: float, noise: float = 0.3, points: int = 5, level: float = 0.95) -> int:
    """Find the smallest number of labels per condition for which the half-width is at most the target.

    Parameters
    ----------
    target : float
        Half-width in scale points, above 0.
    noise, points, level
        As for :func:`half_width`.

    Raises
    ------
    SpecError
        If an argument is out of range, or more than 100,000 labels are needed.
    """
    if not (math.isfinite(target) and target > 0):
        raise SpecError(f"the half-width must be a number of scale points above 0; got {target!r}")
    found = least(lambda n: half_width(n, noise, points, level), target)
    if found is None:
        raise SpecError(f"a half-width of {target:g} needs more than 100,000 labels per condition; give a larger one")
    return found
