"""The response curve: how far opinions move, by what was read, before any model is assumed."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import t as student

from opinionsim.errors import MeasurementError


def response_curve(updates: pd.DataFrame) -> pd.DataFrame:
    """Mean change and share of changes, by the distance of what was read.

    Parameters
    ----------
    updates : DataFrame
        Frame of :func:`opinionsim.comparison.events`.

    Returns
    -------
    DataFrame
        One row a condition and distance: ``cell, discrepancy`` (message less opinion before, in scale points);
        ``change`` (mean of opinion after less before) with the 95 % band ``low, high``, and ``changed`` (share of
        updates after which the opinion is another) with ``changed_low, changed_high``; ``n_updates``, ``n_blocks``,
        ``evidence``. Bands are clustered by block, by the variance of a ratio and Student's t, and NaN below two
        blocks. Noise of ratings is in both axes: agents that never change regress to the mean here.

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
    keys = ["cell", "discrepancy"]
    sums = known.groupby([*keys, "block"], sort=True).agg(
        change=("change", "sum"), changed=("changed", "sum"), n=("changed", "size"), evidence=("evidence", "first")
    )
    rows = sums.groupby(level=keys, sort=True).agg(
        n_updates=("n", "sum"), n_blocks=("n", "size"), evidence=("evidence", "first")
    )
    for name, ends in (("change", ("low", "high")), ("changed", ("changed_low", "changed_high"))):
        mean = sums[name].groupby(level=keys).sum() / rows["n_updates"]
        own = mean.reindex(sums.reset_index("block").index).to_numpy()
        squares = ((sums[name] - own * sums["n"]) ** 2).groupby(level=keys).sum()
        blocks = rows["n_blocks"].where(rows["n_blocks"] > 1)
        error = np.sqrt(squares * blocks / (blocks - 1)) / rows["n_updates"]
        half = error * student.ppf(0.975, blocks - 1)
        low, high = (-np.inf, np.inf) if name == "change" else (0.0, 1.0)
        rows[name], rows[ends[0]], rows[ends[1]] = mean, (mean - half).clip(low, high), (mean + half).clip(low, high)
    columns = ["change", "low", "high", "changed", "changed_low", "changed_high", "n_updates", "n_blocks", "evidence"]
    return rows[columns].reset_index()
