"""Metrics of every run and step of a frame of trajectories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from opinionsim.errors import MeasurementError
from opinionsim.metrics._arrays import Range
from opinionsim.metrics._metric_parts import arguments, compute_metrics
from opinionsim.metrics._opinion_rows import require

_KEYS = ("run_id", "cell", "instrument_id")


def opinion_metrics(
    trajectories: pd.DataFrame,
    names: str | Iterable[str] | None = None,
    *,
    range: Range | None = None,
    network: Any = None,
    **options: Any,
) -> pd.DataFrame:
    """Metrics of the opinions of every run at every step.

    Parameters
    ----------
    trajectories : DataFrame
        One row per run, agent and step: ``run_id, cell, agent, step, value, evidence``, with ``instrument_id`` where
        runs are measured; from :func:`trajectories` or a simulation. Agents are numbered from 0. An agent without an
        opinion has the value NaN or no row.
    names : str or iterable of str, optional
        Keys of :data:`METRICS`; default all whose required arguments are given.
    range : (float, float), optional
        Ends of the opinion scale.
    network : Network or tuple of arrays, or mapping of run_id to such, optional
        Who hears whom.
    **options
        Options as for :func:`compute_metrics`.

    Returns
    -------
    DataFrame
        One row per run, cell, instrument and step, runs in their order in `trajectories` and steps increasing:
        ``run_id, cell[, instrument_id], step, n, n_missing``, the metrics, ``evidence``. ``n`` agents of the run have
        an opinion and ``n_missing`` have none; the metrics cover the first group.

    Raises
    ------
    MeasurementError
        If a column is missing, an agent has two rows at one step, an agent is not a number from 0, evidence differs
        within a run, or a metric cannot be computed.
    """
    keys = [key for key in _KEYS if key in trajectories.columns]
    require(trajectories, "trajectories", ["run_id", "cell", "agent", "step", "value", "evidence"])
    if (trajectories["agent"] < 0).any():
        raise MeasurementError(f"agents must be numbered from 0; got {trajectories['agent'].min()}")
    if trajectories.duplicated([*keys, "agent", "step"]).any():
        raise MeasurementError(
            "an agent occurs twice at one step of a run; pass the trajectories of one kind of text, and keep "
            "instrument_id where runs have several"
        )
    passed = {"range": range, "network": network}
    wanted = list(arguments(names, {name: value for name, value in passed.items() if value is not None}, options))
    frames = [pd.DataFrame(columns=[*keys, "step", "n", "n_missing", *wanted, "evidence"])]
    for _, own in trajectories.groupby(keys, dropna=False, sort=False):
        if own["evidence"].nunique(dropna=False) > 1:
            raise MeasurementError("evidence must be the same in all rows of a run")
        # An agent without any row has no opinion.
        wide = own.pivot(index="step", columns="agent", values="value").reindex(
            columns=np.arange(own["agent"].max() + 1)
        )
        ties = _network_of(own["run_id"].iloc[0], network)
        found = compute_metrics(wide.to_numpy(float), wanted, range=range, network=ties, **options)
        n = wide.notna().sum(axis="columns")
        frame = pd.DataFrame({"n": n, "n_missing": wide.shape[1] - n, **found}, index=wide.index).reset_index()
        frames.append(frame.assign(**own.iloc[0][[*keys, "evidence"]])[frames[0].columns])
    return pd.concat(frames[1:] or frames, ignore_index=True)


def _network_of(run_id: Any, network: Any) -> Any:
    """The network of a run, or the network that all runs share."""
    if not isinstance(network, Mapping):
        return network
    if run_id not in network:
        raise MeasurementError(f"there is no network for run {run_id!r}")
    return network[run_id]
