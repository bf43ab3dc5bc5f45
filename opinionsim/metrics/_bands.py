"""The mean over runs, with a band."""

from __future__ import annotations

import numpy as np

from opinionsim.errors import SpecError
from opinionsim.metrics._uncertainty import bootstrap_interval


def run_band(values: np.ndarray, band: str, level: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The mean over runs, and a band.

    Parameters
    ----------
    values : ndarray (R, K)
        K values of each of R runs, NaN where a run has none.
    band : {"runs", "mean"}
        Interval between two quantiles of the runs, or bootstrap interval of their mean.
    level : float
        Share of the runs in the band, or confidence level.

    Returns
    -------
    mean, low, high : ndarray (K,)
        The ends are NaN for fewer than two runs.
    n : ndarray of int (K,)
        Number of runs with a value.
    """
    known = ~np.isnan(values)
    n = known.sum(axis=0)
    mean, low, high = np.full((3, values.shape[1]), np.nan)
    some, several = n > 0, n > 1
    mean[some] = np.nanmean(values[:, some], axis=0)
    if several.any() and band == "runs":
        tails = [(1 - level) / 2, (1 + level) / 2]
        low[several], high[several] = np.nanquantile(values[:, several], tails, axis=0)
    elif several.any():
        found = bootstrap_interval(values[:, several], level=level)
        low[several], high[several] = found.low, found.high
    return mean, low, high, n


def say_band(band: str, level: float) -> str:
    """The meaning of a band in words.

    Raises
    ------
    SpecError
        If there is no such band, or the level is not between 0 and 1.
    """
    if band not in ("runs", "mean"):
        raise SpecError(
            f"band must be 'runs', the middle of the runs, or 'mean', an interval of their mean; got {band!r}"
        )
    if not 0 < level < 1:
        raise SpecError(f"level must be between 0 and 1; got {level!r}")
    if band == "runs":
        return f"band: middle {100 * level:g}% of the runs"
    return f"band: {100 * level:g}% bootstrap interval of the mean"
