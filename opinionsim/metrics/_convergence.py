"""Times of convergence and consensus, and final opinions of runs; events that no record shows count as censored."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from opinionsim.errors import MeasurementError, whole_number
from opinionsim.metrics._arrays import Measured, Rows, opinion_array, positive


class FirstTime(NamedTuple):
    """Time of an event in each run.

    Attributes
    ----------
    time : float or ndarray (...)
        Time of the record at which the event is first seen; NaN where no record shows it.
    censored : bool or ndarray of bool (...)
        True if no record shows the event, which may happen later. A mean time that leaves out such runs is too small.
    """

    time: Measured
    censored: Measured


class ExitProbability(NamedTuple):
    """Share of runs that end in consensus on a value.

    Attributes
    ----------
    probability : float
        Share of all runs that ended in consensus on the value.
    n_runs : int
        All runs.
    n_undecided : int
        Runs that ended without a consensus on any value. They are censored and count in `n_runs`.
    """

    probability: float
    n_runs: int
    n_undecided: int


def _records(opinions: ArrayLike) -> np.ndarray:
    """Opinions of shape (..., K, N)."""
    values = opinion_array(opinions)
    if values.ndim < 2 or values.shape[-2] == 0:
        raise MeasurementError(f"opinions must be records of agents, shape (..., K, N), K > 0; got {values.shape}")
    return values


def _times(times: ArrayLike | None, size: int) -> np.ndarray:
    """Time of each record; by default its position from 0."""
    if times is None:
        return np.arange(size, dtype=float)
    values = np.asarray(times, dtype=float)
    if values.shape != (size,) or not np.isfinite(values).all() or (np.diff(values) <= 0).any():
        raise MeasurementError(f"times must be {size} finite increasing numbers, one per record")
    return values


def _first(happened: np.ndarray, times: np.ndarray) -> FirstTime:
    """Time of the first True along the last axis."""
    seen = happened.any(axis=-1)
    first = happened.argmax(axis=-1) if happened.shape[-1] else np.zeros(seen.shape, dtype=np.int64)
    found = np.where(seen, times[first], np.nan)
    return FirstTime(found.item(), bool(~seen)) if found.ndim == 0 else FirstTime(found, ~seen)


def largest_change(opinions: ArrayLike) -> np.ndarray:
    """Largest change of any agent's opinion from one record to the next.

    Parameters
    ----------
    opinions : array_like (..., K, N)
        K records of N agents; NaN where there is no opinion.

    Returns
    -------
    ndarray (..., K-1)
        At least 0; infinity if an opinion appears or disappears. An agent without an opinion in either record does not
        change.

    Raises
    ------
    MeasurementError
        If `opinions` has another shape.
    """
    values = _records(opinions)
    change = np.abs(np.diff(values, axis=-2))
    missing = np.isnan(values)
    change = np.where(missing[..., 1:, :] & missing[..., :-1, :], 0.0, change)
    return np.asarray(np.where(np.isnan(change), np.inf, change).max(axis=-1))


def convergence_time(
    opinions: ArrayLike, times: ArrayLike | None = None, tolerance: float = 1e-4, window: int = 1
) -> FirstTime:
    """Time from which opinions do not change for a number of records.

    Parameters
    ----------
    opinions : array_like (..., K, N)
        K records of N agents; NaN where there is no opinion.
    times : array_like (K,), optional
        Time of each record; default 0, 1, ...
    tolerance : float
        Opinions count as unchanged between two records if every agent's opinion changes by less than this.
    window : int
        Number of successive pairs of records without a change.

    Returns
    -------
    FirstTime
        Time of the record that begins the first such stretch; censored if there is none.

    Raises
    ------
    MeasurementError
        If an argument is not valid.

    Notes
    -----
    If one pair moves in each step, quiet steps occur long before convergence. Keep records at least N steps apart, or
    use a long window.
    """
    positive(tolerance, "tolerance")
    whole_number("window", window, 1, MeasurementError)
    quiet: np.ndarray = largest_change(opinions) < tolerance
    records = quiet.shape[-1] + 1
    begins = np.zeros((*quiet.shape[:-1], max(records - window, 0)), dtype=bool)
    if begins.shape[-1]:
        begins = np.asarray(np.lib.stride_tricks.sliding_window_view(quiet, window, axis=-1).all(axis=-1))
    return _first(begins, _times(times, records))


def consensus_time(opinions: ArrayLike, times: ArrayLike | None = None, tolerance: float = 0.0) -> FirstTime:
    """Time of the first record in which all opinions agree.

    Parameters
    ----------
    opinions : array_like (..., K, N)
        K records of N agents; NaN where there is no opinion, which is left out.
    times : array_like (K,), optional
        Time of each record; default 0, 1, ...
    tolerance : float
        Largest spread at which opinions agree; at least 0.

    Returns
    -------
    FirstTime
        Censored if opinions do not agree in any record. With noise, they may diverge again.

    Raises
    ------
    MeasurementError
        If an argument is not valid.
    """
    values = _records(opinions)
    positive(tolerance, "tolerance", zero=True)
    rows = Rows.of(values)
    return _first((rows.spread <= tolerance).reshape(rows.shape), _times(times, values.shape[-2]))


def exit_probability(final: ArrayLike, value: float, tolerance: float = 0.0) -> ExitProbability:
    """Share of runs that end in consensus on a value.

    Parameters
    ----------
    final : array_like (R, N)
        Last opinions of N agents in R runs; NaN where there is none, which is left out.
    value : float
        The opinion in question.
    tolerance : float
        Largest spread at which opinions agree, and largest distance from the value; at least 0.

    Returns
    -------
    ExitProbability
        If any runs are undecided, the share is a lower bound.

    Raises
    ------
    MeasurementError
        If an argument is not valid.
    """
    positive(tolerance, "tolerance", zero=True)
    if not np.isfinite(value):
        raise MeasurementError(f"value must be finite; got {value!r}")
    values = opinion_array(final)
    if values.ndim != 2 or not len(values):
        raise MeasurementError(f"final must be the last opinions of runs, shape (R, N), R > 0; got {values.shape}")
    rows = Rows.of(values)
    decided = rows.spread <= tolerance
    there = decided & (rows.total(np.abs(rows.x - value) > tolerance) == 0)
    return ExitProbability(float(there.mean()), len(values), int(np.count_nonzero(~decided)))
