"""Metrics of every run and step of a frame of trajectories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from opinionsim.errors import MeasurementError
from opinionsim.metrics._arrays import Range
from opinionsim.metrics._instruments import require
from opinionsim.metrics._registry import arguments, compute_metrics

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
        One row a run, agent and step: ``run_id, cell, agent, step, value, evidence``, with ``instrument_id``
        where runs are measured; from :func:`trajectories` or a classic model. Agents are numbered from 0. An agent
        without an opinion has the value NaN or no row.
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
        One row a run, cell, instrument and step, runs in their order in `trajectories` and steps increasing:
        ``run_id, cell[, instrument_id], step, n, n_missing``, the metrics, ``evidence``. ``n`` agents of the run have
        an opinion and ``n_missing`` have none; metrics are over the first.

    Raises
    ------
    MeasurementError
        If a column is missing, an agent has two rows at one step, an agent is no number from 0, evidence differs
        within a run, or a metric cannot be computed.
    """
    keys = [key for key in _KEYS if key in trajectories.columns]
    require(trajectories, "trajectories", ["run_id", "cell", "agent", "step", "value", "evidence"])
    runs = trajectories.groupby(keys, dropna=False, sort=False).ngroup().to_numpy(np.int64)
    agents = trajectories["agent"].to_numpy(np.int64)
    if (agents < 0).any():
        raise MeasurementError(f"agents must be numbered from 0; got {agents.min()}")
    _, first = np.unique(runs, return_index=True)
    heads = trajectories.iloc[first.tolist()]
    _check_evidence(trajectories, runs)
    steps, step = np.unique(trajectories["step"].to_numpy(), return_inverse=True)
    cells, row = np.unique(runs * max(len(steps), 1) + step, return_inverse=True)
    of_run, of_step = np.divmod(cells, max(len(steps), 1))
    n_agents = np.zeros(len(heads), dtype=np.int64)
    np.maximum.at(n_agents, runs, agents + 1)
    _check_once(row, agents, int(n_agents.max(initial=1)))

    passed = {"range": range, "network": network}
    given = {name: value for name, value in passed.items() if value is not None}
    wanted = list(arguments(names, given, options))
    columns = {name: np.full(len(cells), np.nan) for name in wanted}
    n = np.zeros(len(cells), dtype=np.int64)
    values = trajectories["value"].to_numpy(float)
    for chosen, ties in _batches(n_agents, heads["run_id"].to_numpy(object), network):
        kept, mine = chosen[runs], np.flatnonzero(chosen[of_run])
        grid = np.full((len(mine), n_agents[chosen][0]), np.nan)
        grid[np.searchsorted(mine, row[kept]), agents[kept]] = values[kept]
        n[mine] = np.count_nonzero(~np.isnan(grid), axis=1)
        for name, found in compute_metrics(grid, wanted, range=range, network=ties, **options).items():
            columns[name][mine] = found
    repeated = heads.iloc[of_run.tolist()]
    return pd.DataFrame(
        {
            **{key: repeated[key].array for key in keys},
            "step": steps[of_step],
            "n": n,
            "n_missing": n_agents[of_run] - n,
            **columns,
            "evidence": repeated["evidence"].array,
        }
    )


def _batches(n_agents: np.ndarray, run_ids: np.ndarray, network: Any) -> list[tuple[np.ndarray, Any]]:
    """Groups of runs of one size and network, each as a mask and the network, to be measured together."""
    if not isinstance(network, Mapping):
        return [(n_agents == size, network) for size in np.unique(n_agents)]
    missing = [run_id for run_id in run_ids if run_id not in network]
    if missing:
        raise MeasurementError(f"there is no network for run {missing[0]!r}")
    which = np.array([id(network[run_id]) for run_id in run_ids], dtype=np.int64)
    pairs = np.unique(np.stack([n_agents, which], axis=1), axis=0)
    masks = [(n_agents == size) & (which == key) for size, key in pairs]
    return [(mask, network[run_ids[mask.argmax()]]) for mask in masks]


def _check_once(row: np.ndarray, agents: np.ndarray, most: int) -> None:
    """Refuse an agent with two values at one step of a run."""
    position = row * most + agents
    if len(np.unique(position)) < len(position):
        raise MeasurementError(
            "an agent stands twice at one step of a run; pass the trajectories of one kind of text, and keep "
            "instrument_id where runs have several"
        )


def _check_evidence(trajectories: pd.DataFrame, runs: np.ndarray) -> None:
    """Refuse a run whose rows differ in their kind of evidence."""
    kinds = trajectories["evidence"].groupby(runs).nunique(dropna=False)
    if (kinds > 1).any():
        raise MeasurementError("evidence must be the same in all rows of a run")
