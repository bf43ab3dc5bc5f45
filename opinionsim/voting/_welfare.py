"""Social welfare of scores: the power mean over voters, from the mean through the geometric mean to the minimum."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from opinionsim.errors import MeasurementError, SpecError

#: Transforms of scores to positive ones.
TRANSFORMS = ("shift", "exp")
#: Exponents closer to 0 than this are that of the geometric mean: the difference is below the precision of floats.
_GEOMETRIC = 1e-12


def is_number(value: Any) -> bool:
    """Whether a value is a finite number."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def check_alpha(alpha: Any) -> float:
    """Inequality aversion as a float of at least 0, infinity included; raises a SpecError for others."""
    if not (is_number(alpha) or alpha == math.inf) or alpha < 0:
        raise SpecError(f"alpha must be a number of at least 0, or infinity for the minimum; got {alpha!r:.60}")
    return float(alpha)


def power_mean(scores: ArrayLike, alpha: float, axis: int = -1) -> Any:
    r"""Power mean of positive scores, :math:`(\frac1n \sum_i r_i^{1-\alpha})^{1/(1-\alpha)}`.

    Parameters
    ----------
    scores : array_like
        Positive numbers; NaN is left out.
    alpha : float
        Aversion to inequality, at least 0. At 0 the arithmetic mean (utilitarian), at 1 the geometric mean
        (Bernoulli-Nash: it orders as the product does), at infinity the minimum (egalitarian, Rawlsian).
    axis : int
        Axis of the voters.

    Returns
    -------
    float or ndarray
        On the scale of the scores; NaN where there is none.

    Raises
    ------
    SpecError
        If alpha is negative or no number.
    MeasurementError
        If a score is not positive and finite.

    Notes
    -----
    For one alpha it orders candidates as the isoelastic welfare :math:`\sum_i r_i^{1-\alpha}/(1-\alpha)` does, from
    which Bakker et al. 2022 (appendix; D6) draw their functions, and it is free of scale: c times the scores have c
    times the welfare.
    """
    values = np.asarray(scores, dtype=float)
    if not ((values > 0) & (values < np.inf) | np.isnan(values)).all():
        raise MeasurementError("the power mean needs positive finite scores")
    alpha = check_alpha(alpha)
    known = ~np.isnan(values)
    if alpha in (0.0, np.inf):
        found = arithmetic(values, known, axis) if alpha == 0.0 else np.fmin.reduce(values, axis=axis)
    else:
        found = np.exp(log_power_mean(np.log(values), known, alpha, axis))
    return found if np.ndim(found) else float(found)


def arithmetic(values: np.ndarray, known: np.ndarray, axis: int) -> Any:
    """Mean of the known values; NaN where there is none."""
    n = np.count_nonzero(known, axis=axis)
    return np.where(known, values, 0.0).sum(axis=axis) / np.where(n > 0, n, np.nan)


def log_power_mean(logs: np.ndarray, known: np.ndarray, alpha: float, axis: int) -> Any:
    """Logarithm of the power mean of scores with these logarithms; of any size, for no power leaves 0 to 1."""
    power = 1.0 - alpha
    if abs(power) < _GEOMETRIC:
        return arithmetic(logs, known, axis)
    # The largest power is that of the largest score, or of the smallest one where the exponent is negative.
    leading = (np.fmax if power > 0 else np.fmin).reduce(logs, axis=axis, keepdims=True)
    if power == -np.inf:
        return np.squeeze(leading, axis=axis)
    total = arithmetic(np.expm1(power * (logs - leading)), known, axis)
    return np.squeeze(leading, axis=axis) + np.log1p(total) / power
