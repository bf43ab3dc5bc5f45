"""Conditions of an experiment: which ones vary, their order, and measures averaged over topics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from opinionsim.errors import MeasurementError, SpecError
from opinionsim.metrics._frames import require

__all__ = [
    "NOT_SET",
    "check_conditions",
    "condition_axes",
    "condition_metrics",
    "named_levels",
    "order_levels",
    "sampling_unit",
]

#: Columns of the runs frame that describe a condition, in the order tables and figures use them.
_CONDITIONS = (
    "framing",
    "confirmation_bias",
    "memory",
    "world",
    "model",
    "interaction",
    "network",
    "n_agents",
    "steps",
    "population",
    "cognition",
    "measurement",
    "topic",
)

#: Level of a condition that a run does not know, as a control may not.
NOT_SET = "not set"

#: Levels with a natural order that neither the alphabet nor a number gives.
_LEVELS = (
    "falsehood",
    "truth",
    "none",
    "weak",
    "strong",
    "cumulative",
    "reflective",
    "reflective-as-run",
    "closed",
    "open",
    "Science",
    "History",
    "Common sense",
    "all-positive",
    "skewed-positive",
    "uniform",
    "skewed-negative",
    "all-negative",
    NOT_SET,
)

#: What replicates and topics are averaged over; never a condition.
_COUNTS = ("n_texts", "n_missing", "n_agents", "n_never")


def order_levels(values: Iterable[Any]) -> list[Any]:
    """Distinct values of a condition in the order to show them.

    Parameters
    ----------
    values : iterable
        Values of one column; missing ones are left out.

    Returns
    -------
    list
        Framings, bias levels, memories, worlds and categories in the order of the study (Chuang et al.
        2023, Table 1), initial opinions from positive to negative, numbers increasing, anything else as
        it first appears.
    """
    distinct = list(dict.fromkeys(value for value in values if not pd.isna(value)))
    if all(value in _LEVELS for value in distinct):
        return sorted(distinct, key=_LEVELS.index)
    if all(isinstance(value, int | float | np.number) for value in distinct):
        return sorted(distinct)
    return distinct


def named_levels(column: pd.Series[Any]) -> pd.Series[Any]:
    """Levels of a condition as texts, with a text where it is not set."""
    return column.astype(object).where(column.notna(), NOT_SET).astype(str)


def _partition(column: pd.Series[Any]) -> bytes:
    """Which rows of a column are equal, in a form that compares."""
    codes, _ = pd.factorize(named_levels(column))
    return np.asarray(codes, dtype=np.int64).tobytes()


def condition_axes(runs: pd.DataFrame) -> tuple[str, ...]:
    """Columns of a runs frame that differ between conditions.

    Parameters
    ----------
    runs : DataFrame
        Frame of a store, with one column a swept axis by its dotted path.

    Returns
    -------
    tuple of str
        Columns with more than one value: framing, confirmation bias, memory and the other named ones
        first, then swept paths that say something the named ones do not, ``topic`` last.
    """
    named = [column for column in _CONDITIONS if column in runs.columns]
    paths = [str(column) for column in runs.columns if "." in str(column)]
    varying = {column for column in [*named, *paths] if named_levels(runs[column]).nunique() > 1}
    axes = [column for column in named if column in varying]
    for path in paths:
        if path in varying and not any(_repeats(runs, path, axis) for axis in axes):
            axes.append(path)
    axes = [axis for axis in axes if axis != "topic"]
    return (*axes, "topic") if "topic" in varying else tuple(axes)


def _repeats(runs: pd.DataFrame, path: str, axis: str) -> bool:
    """Whether a swept path, wherever it is set and to more than one value, differs just where another axis does."""
    known = runs[runs[path].notna()]
    if named_levels(known[path]).nunique() < 2:
        return _partition(runs[path]) == _partition(runs[axis])
    return _partition(known[path]) == _partition(known[axis])


def sampling_unit(runs: pd.DataFrame, by: Sequence[str]) -> str:
    """What standard errors are taken over: topics where several are averaged, else replicates."""
    return "topic" if "topic" not in by and runs["topic"].nunique() > 1 else "replicate"


def check_conditions(runs: pd.DataFrame, by: Sequence[str]) -> None:
    """Refuse to average over a condition that nobody named.

    Raises
    ------
    SpecError
        If runs that agree on the columns `by` differ in another condition than the topic.
    """
    require(runs, "runs", ["topic", *by])
    groups = pd.Series("", index=runs.index)
    for column in by:
        groups = groups + "\x1f" + named_levels(runs[column])
    for axis in condition_axes(runs):
        if axis in by or axis == "topic":
            continue
        for _, values in named_levels(runs[axis]).groupby(groups):
            if values.nunique() > 1:
                levels = ", ".join(str(level) for level in order_levels(values))
                raise SpecError(
                    f"runs of one condition differ in {axis} ({levels}); add it to `by` or pass the runs of one"
                )


def condition_metrics(
    runs: pd.DataFrame, metrics: pd.DataFrame, by: Sequence[str] | None = None, over: str | None = None
) -> pd.DataFrame:
    """Mean and standard error of bias and diversity for every condition.

    Replicates are averaged within each topic first, so that a topic counts once however often it was
    run; then mean and standard error are taken over the topics. Only complete runs enter.

    Parameters
    ----------
    runs : DataFrame
        Frame of a store.
    metrics : DataFrame
        From :func:`run_metrics`.
    by : sequence of str, optional
        Columns of `runs` that make a condition; default all that vary (:func:`condition_axes`) but the topic.
    over : str, optional
        Unit of the standard error, a column of `runs`: default ``topic`` where several topics are averaged,
        else ``replicate``.

    Returns
    -------
    DataFrame
        One row a condition, kind of text and evidence: the columns `by`, ``kind, evidence, bias, bias_se,
        diversity, diversity_se, n, over, n_runs, never_measured_rate, missing_rate, ddof``. ``n`` units
        have a bias. Standard errors are population SD/sqrt(n), and NaN for fewer than two units, which say
        nothing about spread.

    Raises
    ------
    SpecError
        If a condition would mix runs that differ in a condition not in `by`.
    MeasurementError
        If a run would count twice, as when two classifiers coded it, or `metrics` mixes values of ddof.

    Notes
    -----
    The standard error is the convention of the published tables (Chuang et al. 2023, Tables 1-2; A13).
    """
    complete = runs[runs["status"] == "complete"]
    axes = [axis for axis in condition_axes(complete) if axis != "topic"] if by is None else list(by)
    check_conditions(complete, axes)
    unit = sampling_unit(complete, axes) if over is None else over
    if metrics["ddof"].nunique() > 1:
        raise MeasurementError("metrics mix values of ddof; compute them with one")
    joined = _join(complete, metrics, [*axes, "topic", unit])
    keys = [*axes, "kind", "evidence"]
    _check_once(joined, keys)
    units = joined.groupby([*keys, unit], dropna=False, sort=False)[["bias", "diversity"]].mean()
    grouped = units.groupby(level=list(range(len(keys))), dropna=False, sort=False)
    counts = joined.groupby(keys, dropna=False, sort=False)[list(_COUNTS)].sum()
    n = grouped.count()
    error = grouped.std(ddof=0).where(n > 1) / n**0.5
    frame = pd.DataFrame(
        {
            "bias": grouped["bias"].mean(),
            "bias_se": error["bias"],
            "diversity": grouped["diversity"].mean(),
            "diversity_se": error["diversity"],
            "n": n["bias"],
            "over": unit,
            "n_runs": joined.groupby(keys, dropna=False, sort=False).size(),
            "never_measured_rate": counts["n_never"] / counts["n_agents"],
            "missing_rate": counts["n_missing"] / counts["n_texts"],
        }
    ).reset_index()
    return _sorted(frame.assign(ddof=metrics["ddof"].max()), axes)


def _join(runs: pd.DataFrame, metrics: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Metrics beside the columns of `runs` they do not carry themselves."""
    require(runs, "runs", ["run_id", "cell", *columns])
    wanted = [column for column in dict.fromkeys(columns) if column not in metrics.columns]
    return metrics.merge(runs[["run_id", "cell", *wanted]], on=["run_id", "cell"], how="inner")


def _check_once(joined: pd.DataFrame, keys: Sequence[str]) -> None:
    """Refuse conditions in which one run stands twice."""
    twice = joined.duplicated([*keys, "run_id"])
    if twice.any():
        run_id = joined.loc[twice, "run_id"].iloc[0]
        raise MeasurementError(
            f"run {run_id!r} counts twice in one condition; add the axis that separates its measurements to `by` "
            "or pass the metrics of one measurement"
        )


def _sorted(frame: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Rows in the order of the levels of each condition."""
    ranks = pd.DataFrame(index=frame.index)
    for column in by:
        rank = {level: position for position, level in enumerate(order_levels(frame[column]))}
        ranks[column] = frame[column].map(rank).astype(float).fillna(len(rank))
    ranks["kind"] = frame["kind"]
    return frame.loc[ranks.sort_values([*by, "kind"], kind="stable").index].reset_index(drop=True)
