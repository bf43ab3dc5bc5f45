"""The response curve: how far opinions move, by what was read, before any model is assumed."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import t as student

from opinionsim.errors import MeasurementError


def response_curve(updates: pd.DataFrame, *, by_start: bool = False) -> pd.DataFrame:
    """Mean change and share of changes, by the distance of what was read.

    Parameters
    ----------
    updates : DataFrame
        Frame of :func:`opinionsim.comparison.events`.
    by_start : bool
        Whether each opinion before has a curve of its own.

    Returns
    -------
    DataFrame
        One row a condition and distance: ``cell, discrepancy`` (message less opinion before, in scale points), with
        `by_start` also ``before``; ``change`` (mean of opinion after less before) with the 95 % band ``low, high``,
        and ``changed`` (share of updates after which the opinion is another) with ``changed_low, changed_high``;
        ``n_updates``, ``n_runs``, ``evidence``. Bands are clustered by run, by the variance of a ratio and Student's t,
        and NaN below two runs. Noise of ratings is in both axes: agents that never change regress to the mean here.

    Raises
    ------
    MeasurementError
        If no update has an opinion before, a message and an opinion after.
    """
    known = updates.dropna(subset=["before", "said", "after"])
    if known.empty:
        raise MeasurementError("no update has an opinion before, a measured message and an opinion after")
    known = known.assign(
        discrepancy=known["said"] - known["before"],
        change=known["after"] - known["before"],
        changed=(known["after"] != known["before"]).astype(float),
    )
    keys = ["cell", *(["before"] if by_start else []), "discrepancy"]
    sums = known.groupby([*keys, "run_id"], sort=True).agg(
        change=("change", "sum"), changed=("changed", "sum"), n=("changed", "size"), evidence=("evidence", "first")
    )
    rows = sums.groupby(level=keys, sort=True).agg(
        n_updates=("n", "sum"), n_runs=("n", "size"), evidence=("evidence", "first")
    )
    for name, ends in (("change", ("low", "high")), ("changed", ("changed_low", "changed_high"))):
        mean = sums[name].groupby(level=keys).sum() / rows["n_updates"]
        own = mean.reindex(sums.reset_index("run_id").index).to_numpy()
        squares = ((sums[name] - own * sums["n"]) ** 2).groupby(level=keys).sum()
        runs = rows["n_runs"].where(rows["n_runs"] > 1)
        error = np.sqrt(squares * runs / (runs - 1)) / rows["n_updates"]
        half = error * student.ppf(0.975, runs - 1)
        low, high = (-np.inf, np.inf) if name == "change" else (0.0, 1.0)
        rows[name], rows[ends[0]], rows[ends[1]] = mean, (mean - half).clip(low, high), (mean + half).clip(low, high)
    columns = ["change", "low", "high", "changed", "changed_low", "changed_high", "n_updates", "n_runs", "evidence"]
    return rows[columns].reset_index()
