"""The mean over runs, with a band."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from opinionsim.errors import SpecError

#: Minimum number of runs for a band. With fewer, quantiles mean little and an interval is mostly assumption.
LEAST_RUNS = 8
#: No limits.
ANY = (-math.inf, math.inf)


def limits_of(measure: str, low: float, high: float, ddof: int = 0) -> tuple[float, float]:
    """Possible range of mean opinion or diversity on a scale from `low` to `high`; other metrics have no limits."""
    spread = (high - low) / 2 * (math.sqrt(2) if ddof else 1)
    return {"bias": (low, high), "diversity": (0.0, spread)}.get(measure.partition("@")[0], ANY)


def run_band(
    values: np.ndarray, band: str, level: float, blocks: ArrayLike = (), limits: tuple[ArrayLike, ArrayLike] = ANY
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The mean over runs, and a band.

    Parameters
    ----------
    values : ndarray (R, K)
        K values of each of R runs, NaN where a run has none.
    band : {"runs", "mean"}
        Interval between two quantiles of the runs, or t interval of their mean.
    level : float
        Share of the runs in the band, or confidence level.
    blocks : array_like of str (R,), optional
        The block of each run. For an interval of the mean, the runs of a block count as one unit. By default, each run
        is a block.
    limits : (float, float) or (ndarray (K,), ndarray (K,))
        Smallest and largest possible mean; intervals are cut off there.

    Returns
    -------
    mean, low, high : ndarray (K,)
        The ends are NaN for fewer than eight runs. For an interval of the mean, they are also NaN if all runs are
        equal.
    n : ndarray of int (K,)
        Number of runs with a value; for an interval of the mean, each block counts once.
    """
    from scipy.special import stdtrit

    if band == "mean" and np.size(blocks):
        values = pd.DataFrame(values).groupby(np.asarray(blocks)).mean().to_numpy()
    known = ~np.isnan(values)
    n = known.sum(axis=0)
    mean, low, high = np.full((3, values.shape[1]), np.nan)
    some, several = n > 0, n >= LEAST_RUNS
    mean[some] = np.nanmean(values[:, some], axis=0)
    if several.any() and band == "runs":
        tails = [(1 - level) / 2, (1 + level) / 2]
        low[several], high[several] = np.nanquantile(values[:, several], tails, axis=0)
    elif several.any():
        several[several] = np.nanmax(values[:, several], axis=0) > np.nanmin(values[:, several], axis=0)
        count = n[several]
        half = stdtrit(count - 1, (1 + level) / 2) * np.nanstd(values[:, several], axis=0, ddof=1) / np.sqrt(count)
        low[several], high[several] = mean[several] - half, mean[several] + half
        low, high = np.clip([low, high], *limits)
    return mean, low, high, n


def say_band(band: str, level: float, n_runs: ArrayLike = LEAST_RUNS, each: str = "thin lines") -> str:
    """Describe in words what a band and the marks of single runs mean; empty if no mean covers two runs.

    Parameters
    ----------
    band, level
        As for :func:`run_band`.
    n_runs : array_like of int
        Numbers of runs behind the means.
    each : str
        How the figure draws single runs.

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
    what = "middle {} of the runs" if band == "runs" else "pointwise {} t interval of the mean over runs"
    counts, said = np.asarray(n_runs), []
    if (counts >= LEAST_RUNS).any():
        said.append("band: " + what.format(f"{100 * level:g}%"))
    if ((counts > 1) & (counts < LEAST_RUNS)).any():
        said.append(f"{each}: single runs of conditions with fewer than {LEAST_RUNS} runs")
    return "; ".join(said)
