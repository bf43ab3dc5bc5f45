"""Uncertainty of metrics: tests of means over runs, permutation nulls over agents."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from opinionsim.errors import MeasurementError, whole_number
from opinionsim.foundation.streams import stream
from opinionsim.metrics._arrays import opinion_array
from opinionsim.metrics._metric_parts import METRICS

#: Resampled values held at a time.
_BATCH = 4_000_000


@dataclass(frozen=True, slots=True)
class PermutationNull:
    """A metric, and its distribution when opinions are shuffled over agents.

    Attributes
    ----------
    observed : float
        The metric.
    null_mean : float
        Its mean over permutations.
    interval : (float, float)
        Central part of the null distribution, with probability `level`.
    p_value : float
        Two-sided p-value; the observed arrangement counts as a permutation. At least 1/(n + 1).
    level : float
        Level of the interval.
    n : int
        Number of permutations.
    """

    observed: float
    null_mean: float
    interval: tuple[float, float]
    p_value: float
    level: float
    n: int


@dataclass(frozen=True, slots=True)
class MeanTest:
    """A permutation test of two means.

    Attributes
    ----------
    difference : float
        Mean of the first values minus the mean of the second.
    p_value : float
        Two-tailed p-value.
    exact : bool
        Whether all arrangements were counted, rather than a sample.
    n : int
        Number of arrangements that were counted, including the observed one.
    """

    difference: float
    p_value: float
    exact: bool
    n: int


def _check(level: float, n: int) -> None:
    """Refuse a level outside 0 to 1 and a number of resamples below 1."""
    if not 0 < level < 1:
        raise MeasurementError(f"level must be between 0 and 1; got {level!r}")
    whole_number("n", n, 1, MeasurementError)


def spell_mean(mean: float, error: float = math.nan, alone: str = ".4g") -> str:
    """Write a mean with its standard error in the format of the published tables.

    Parameters
    ----------
    mean, error : float
        The error is given to two significant digits, the mean to the same decimal place.
    alone : str
        Format of a mean without an error, or with an error of 0.

    Returns
    -------
    str
        For example "0.052 ± 0.031"; negative numbers have a minus sign, not a hyphen.
    """
    # Equal values may have a standard deviation of the size of rounding errors.
    if not error > 1e-12 * max(abs(mean), 1e-12):
        spelled, behind = f"{mean:{alone}}", "" if math.isnan(error) else " ± 0"
    elif not math.isfinite(error):
        spelled, behind = f"{mean:{alone}}", f" ± {error}"
    else:
        places = 1 - int(f"{error:.1e}".partition("e")[2])
        spelled, behind = (f"{round(each, places):.{max(places, 0)}f}" for each in (mean, error))
        behind = f" ± {behind}"
    # A mean that rounds to zero has no sign.
    negative = spelled.startswith("-") and spelled.strip("-0.") != ""
    return ("\N{MINUS SIGN}" if negative else "") + spelled.removeprefix("-") + behind


def permutation_test(
    first: ArrayLike, second: ArrayLike, *, paired: bool = False, n: int = 9999, seed: int = 0
) -> MeanTest:
    """Two-tailed permutation test of the means of a metric under two conditions.

    Parameters
    ----------
    first, second : array_like (R,), (Q,)
        Metric of each run under the first and second condition. NaN is left out.
    paired : bool
        Whether values at the same position belong together, like two runs of one block; then R = Q. Pairs with a NaN
        are left out.
    n : int
        Maximum number of arrangements to count, at least 1. If there are more, the test draws n of them.
    seed : int
        Seed of the draws, >= 0.

    Returns
    -------
    MeanTest
        The p-value is twice the smaller of two shares, at most 1: the shares of arrangements whose difference is at
        least as large, or at least as small, as the observed one. Arrangements divide the values into two groups of the
        same sizes, or swap them within pairs. If there are at most n arrangements, the test counts all of them;
        otherwise it adds the observed one to those it draws.

    Raises
    ------
    MeasurementError
        If an argument is not valid, or a condition has fewer than two values.

    Notes
    -----
    As in Phipson and Smyth 2010, doi 10.2202/1544-6115.1585, the observed arrangement counts among those drawn, so no
    p-value is 0. The test compares runs, so do not pass the agents of one run.
    """
    from scipy.stats import permutation_test as permuted

    _check(0.5, n)
    one, two = _two_conditions(first, second, paired=paired)
    if min(len(one), len(two)) < 2:
        raise MeasurementError(f"each condition must have at least two values; got {len(one)} and {len(two)}")
    possible = 2 ** len(one) if paired else comb(len(one) + len(two), len(one))
    null = permuted(
        (one, two),
        lambda x, y, axis: x.mean(axis=axis) - y.mean(axis=axis),
        permutation_type="samples" if paired else "independent",
        vectorized=True,
        n_resamples=n,
        batch=max(1, _BATCH // (len(one) + len(two))),
        random_state=stream(seed, "permutation test"),
    ).null_distribution
    difference, exact = float(one.mean() - two.mean()), possible <= n
    p_value = _two_sided(null, difference, float(np.abs([*one, *two]).max()), exact=exact)
    return MeanTest(difference, p_value, exact, len(null) + (not exact))


def _two_sided(null: np.ndarray, observed: float, size: float, *, exact: bool = False) -> float:
    """Twice the smaller share of arrangements that are as extreme, at most 1; the observed one counts among drawn ones.

    Arrangements that differ only by rounding of numbers of this size count as equally extreme.
    """
    slack = 1e-12 * max(1.0, size)
    tails = (np.count_nonzero(null >= observed - slack), np.count_nonzero(null <= observed + slack))
    return float(min(1.0, 2 * (min(tails) + (not exact)) / (len(null) + (not exact))))


def _two_conditions(first: ArrayLike, second: ArrayLike, *, paired: bool) -> tuple[np.ndarray, np.ndarray]:
    """Values of two conditions without NaN; pairs with a NaN are left out whole."""
    one, two = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    for name, values in (("first", one), ("second", two)):
        if values.ndim != 1:
            raise MeasurementError(f"{name} must have one dimension, one value per run; got shape {values.shape}")
        if np.isinf(values).any():
            raise MeasurementError(f"{name} must be finite, or NaN if a run has no value; got an infinity")
    if paired and len(one) != len(two):
        raise MeasurementError(f"paired conditions must have the same number of values; got {len(one)} and {len(two)}")
    known = ~np.isnan(one), ~np.isnan(two)
    if paired:
        known = (known[0] & known[1],) * 2
    return one[known[0]], two[known[1]]


def permutation_null(
    opinions: ArrayLike,
    network: Any,
    metric: str | Callable[..., Any] = "neighbour_correlation",
    n: int = 999,
    seed: int = 0,
    level: float = 0.95,
    **options: Any,
) -> PermutationNull:
    """A network metric, and its distribution when the same opinions are shuffled over the agents.

    Parameters
    ----------
    opinions : array_like (N,)
        One opinion per agent. Agents without an opinion (NaN) are not shuffled.
    network : Network or tuple of arrays
        Who hears whom.
    metric : str or callable
        Name of a network metric in :data:`METRICS`, or a function of opinions (n, N), network and options.
    n : int
        Permutations.
    seed : int
        Seed of the permutations, >= 0.
    level : float
        Probability of the interval under the null distribution.
    **options
        Arguments of the metric, such as ``range``.

    Returns
    -------
    PermutationNull
        The p-value is twice the smaller one-sided one, (1 + number of permutations at least as extreme) / (1 + n),
        and at most 1.

    Raises
    ------
    MeasurementError
        If an argument is not valid, or the metric does not use a network.

    Notes
    -----
    The +1 follows Phipson and Smyth 2010, doi 10.2202/1544-6115.1585. The null hypothesis is that opinions do not
    depend on position in the network. If opinions spread over ties, it is false from the first step, and the p-value
    only shows how soon this can be detected. Each run is one observation: compare runs, not p-values.
    """
    _check(level, n)
    values = opinion_array(opinions)
    if values.ndim != 1:
        raise MeasurementError(f"opinions must have one dimension, one value per agent; got shape {values.shape}")
    function = _network_metric(metric)
    observed = float(function(values, network=network, **options))
    present = np.flatnonzero(~np.isnan(values))
    shuffled = np.repeat(values[None], n, axis=0)
    draw = stream(seed, "permutation null")
    shuffled[:, present] = draw.permuted(shuffled[:, present], axis=1)
    null = np.asarray(function(shuffled, network=network, **options), dtype=float)
    if np.isnan(observed) or np.isnan(null).all():
        return PermutationNull(observed, float("nan"), (float("nan"), float("nan")), float("nan"), level, n)
    null = null[~np.isnan(null)]
    p_value = _two_sided(null, observed, abs(observed))
    low, high = np.quantile(null, [(1 - level) / 2, (1 + level) / 2])
    return PermutationNull(observed, float(null.mean()), (float(low), float(high)), p_value, level, len(null))


def _network_metric(metric: str | Callable[..., Any]) -> Callable[..., Any]:
    """The function of a metric given by name or as a function."""
    if callable(metric):
        return metric
    known = [name for name, entry in METRICS.items() if "network" in entry.needs]
    if metric not in known:
        raise MeasurementError(f"metric must be one of {', '.join(known)}, or a function; got {metric!r}")
    return METRICS[metric].function
