"""Runs and metrics of a table, and their independent units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from opinionsim.analysis._means import (
    ESTIMANDS,
    LEAST_UNITS,
    Estimand,
    Estimate,
    design_of,
    estimate,
    no_estimate,
)
from opinionsim.errors import SpecError
from opinionsim.foundation.templates import sentences
from opinionsim.metrics import (
    ANY,
    chosen_kind,
    condition_axes,
    condition_means,
    condition_rows,
    in_order,
    limits_of,
    usable_runs,
)

#: What names a row of metrics.
METRIC_KEYS = ["run_id", "cell", "instrument_id", "kind"]
#: The metrics that tables of opinions have.
MEASURES = ("bias", "diversity")


def default_axes(runs: pd.DataFrame) -> list[str]:
    """Return the conditions of table rows: all that vary except the topic, or the topic if nothing else varies."""
    # A condition has its name before runs of another are complete.
    varying = condition_axes(usable_runs(runs)) or condition_axes(runs)
    return [axis for axis in varying if axis != "topic"] or list(varying)


def own_metrics(runs: pd.DataFrame, metrics: pd.DataFrame) -> pd.DataFrame:
    """Return metrics of runs; if several instruments read the same texts, only of the one that `runs` names."""
    keys = ["run_id", "cell"]
    if "instrument_id" not in runs.columns:
        return metrics.merge(runs[keys], on=keys)
    named = runs[[*keys, "instrument_id"]].rename(columns={"instrument_id": "own"})
    found = metrics.merge(named, on=keys)
    is_own = found["instrument_id"] == found["own"]
    if not is_own.all():
        has_own = is_own.groupby([found[key] for key in (*keys, "kind")]).transform("any")
        found = found[is_own | ~has_own.astype(bool)].reset_index(drop=True)
    return found.drop(columns="own")


def counted(runs: pd.DataFrame, metrics: pd.DataFrame, kind: str | None) -> tuple[pd.DataFrame, str]:
    """Return the metrics that a table counts, and the kind of text that they come from.

    Raises
    ------
    SpecError
        If no complete run has a measured stance, or none has one in texts of that kind.
    """
    usable = own_metrics(usable_runs(runs), metrics)
    none = "no complete run has a text with a measured stance, so there is nothing to tabulate"
    chosen = chosen_kind(kind, usable["kind"], runs, none)
    return usable[usable["kind"] == chosen], chosen


def measured(
    runs: pd.DataFrame, metrics: pd.DataFrame, by: Sequence[str], kind: str | None
) -> tuple[pd.DataFrame, pd.DataFrame, str]:
    """Return the numbers of a table with standard errors as published, their metrics, and the kind of text."""
    used, chosen = counted(runs, metrics, kind)
    rows, _ = condition_rows(runs, used, by)
    return in_order(condition_means(rows, by), by, usable_runs(runs)).reset_index(drop=True), rows, chosen


def unit_frame(
    runs: pd.DataFrame,
    metrics: pd.DataFrame,
    measures: Sequence[str] = MEASURES,
    by: Sequence[str] | None = None,
    kind: str | None = None,
) -> pd.DataFrame:
    """Return one value of each measure for every condition, topic and block.

    Parameters
    ----------
    runs : DataFrame
        Frame of a store; only complete runs of cells with a measured stance are used.
    metrics : DataFrame
        From :func:`opinionsim.metrics.run_metrics`; it may have further columns, such as those of
        :func:`opinionsim.metrics.named_metrics`.
    measures : sequence of str
        Columns of `metrics`.
    by : sequence of str, optional
        Columns of `runs` that define a condition; by default all that vary except the topic.
    kind : str, optional
        Kind of text, as for :func:`opinionsim.analysis.table`.

    Returns
    -------
    DataFrame
        Columns `by`, ``evidence, topic, block``, one column per measure, and ``withheld``, which says whether a run has
        no value because too few of its agents were measured. Runs with the same condition, topic and block are redraws.
        They are averaged, because they are not independent units. ``attrs["limits"]`` has the possible ranges of the
        mean opinion and the diversity.

    Raises
    ------
    SpecError
        If runs with equal `by` differ in another condition, or a measure is not among the metrics.
    """
    used, _ = counted(runs, metrics, kind)
    for measure in measures:
        if measure not in used.columns:
            raise SpecError(f"{measure!r} is no metric of these runs; name it under measurement.metrics")
    rows, axes = condition_rows(runs, used, by)
    return units_of(rows, axes, measures)


def units_of(rows: pd.DataFrame, axes: Sequence[str], measures: Sequence[str] = MEASURES) -> pd.DataFrame:
    """Make the frame of :func:`unit_frame` from rows of metrics with their conditions."""
    keys = [*dict.fromkeys([*axes, "evidence", "topic", "block"])]
    grouped = rows.assign(withheld=rows.get("withheld", False)).groupby(keys, dropna=False, sort=False)
    units = grouped[list(measures)].mean().assign(withheld=grouped["withheld"].any()).reset_index()
    shares = rows.filter(regex=r"^share_-?[0-9.]+$").dropna(axis=1, how="all")
    points = [float(str(name).removeprefix("share_")) for name in shares]
    if len(points) > 1:
        scale = (min(points), max(points), int(rows["ddof"].max()))
        units.attrs["limits"] = {name: limits_of(name, *scale) for name in measures}
    return units


def estimates_of(
    units: pd.DataFrame, by: Sequence[str], measure: str, estimand: Estimand | None = None, level: float = 0.95
) -> dict[tuple[Any, ...], Estimate]:
    """Estimate the mean of a measure in every condition of a unit frame.

    Parameters
    ----------
    units : DataFrame
        From :func:`unit_frame`.
    by : sequence of str
        Its columns that define a condition.
    measure : str
        Its column.
    estimand, level
        As for :func:`opinionsim.analysis.estimate`; the default estimand is the same for all conditions.

    Returns
    -------
    dict of tuple to Estimate
        Estimates by the levels of the condition, as :func:`key_of` returns them.
    """
    keys, limits = list(dict.fromkeys([*by, "evidence"])), units.attrs.get("limits", {}).get(measure, ANY)
    # Without its attributes, which pandas would copy for every group.
    grouped = pd.DataFrame(units).groupby(keys, dropna=False, sort=False)
    chosen = estimand or ESTIMANDS[int(grouped["topic"].nunique().min() < LEAST_UNITS)]
    design = design_of(units["topic"], units["block"])
    found = {}
    for key, group in grouped:
        if group[measure].notna().any():
            of = group["topic"], group["block"], group[measure]
            found[key_of(key)] = estimate(*of, chosen, level, design, limits)
    return found


def key_of(levels: Sequence[Any]) -> tuple[Any, ...]:
    """Return the levels of a condition, with None for missing levels so that these are equal."""
    return tuple(None if pd.isna(level) else level for level in levels)


def with_intervals(
    frame: pd.DataFrame, units: pd.DataFrame, by: Sequence[str], estimand: Estimand | None, measures: Sequence[str]
) -> tuple[pd.DataFrame, list[list[Estimate]]]:
    """Return a frame of conditions with means and intervals of the measures instead of standard errors.

    Returns
    -------
    frame : DataFrame
        Each measure, ``<measure>_ci_low`` and ``<measure>_ci_high``; for the first measure also ``estimand, unit,
        units, method, level, left_out, no_interval`` (the reason for a missing interval).
    estimates : list of list of Estimate
        Those of each measure, one a condition that has one.
    """
    keys = [key_of(row) for row in frame[list(dict.fromkeys([*by, "evidence"]))].itertuples(index=False, name=None)]
    made = frame.drop(columns=[name for name in frame.columns if name.endswith("_se") or name in ("n", "over")])
    found = [estimates_of(units, by, measure, estimand) for measure in measures]
    missing = no_estimate("no value")
    for measure, own in zip(measures, found, strict=True):
        rows = [own.get(key, missing).columns(measure) for key in keys]
        made = made.assign(**pd.DataFrame(rows, index=made.index))
    rests = pd.DataFrame([found[0].get(key, missing).basis for key in keys], index=made.index)
    return made.assign(**rests), [[own[key] for key in keys if key in own] for own in found]


@dataclass(frozen=True, eq=False)
class ByCondition:
    """Numbers of conditions, and the values behind them.

    Attributes
    ----------
    frame : DataFrame
        One row per condition, in the order of the specification: :func:`opinionsim.metrics.condition_metrics` with
        intervals instead of standard errors (:func:`with_intervals`).
    rows : DataFrame
        The metrics of the runs that are used.
    units : DataFrame
        One value of each measure for every condition, topic and block (:func:`unit_frame`).
    kind : str
        Kind of text from which opinions are read.
    estimates : list of list of Estimate
        Those of each measure, one a condition that has one.
    """

    frame: pd.DataFrame
    rows: pd.DataFrame
    units: pd.DataFrame
    kind: str
    estimates: list[list[Estimate]]


def by_condition(
    runs: pd.DataFrame,
    metrics: pd.DataFrame,
    by: Sequence[str],
    kind: str | None = None,
    estimand: Estimand | None = None,
    measures: Sequence[str] = MEASURES,
) -> ByCondition:
    """Compute means of measures with intervals in every condition, in one pass over the metrics.

    Parameters
    ----------
    runs, metrics, by, kind, measures
        As for :func:`unit_frame`.
    estimand : str, optional
        As for :func:`opinionsim.analysis.estimate`.

    Raises
    ------
    SpecError
        As :func:`unit_frame`.
    """
    frame, rows, chosen = measured(runs, metrics, by, kind)
    units = units_of(rows, by, measures)
    made, found = with_intervals(frame, units, by, estimand, measures)
    return ByCondition(made, rows, units, chosen, found)


def interval_notes(estimates: Sequence[Estimate], *further: Sequence[Estimate]) -> list[str]:
    """Describe the basis of intervals (estimand, unit, number, method, level), and why some are missing.

    For further measures, the notes give only other reasons for missing intervals.
    """
    if not estimates:
        return []
    reasons = dict.fromkeys(each.reason for each in estimates if each.reason)
    others = dict.fromkeys(each.reason for own in further for each in own if each.reason not in ("", *reasons))
    return sentences(
        "opinionsim.analysis",
        "intervals.txt",
        first=estimates[0],
        having=[each for each in estimates if not each.reason],
        rows=len(estimates),
        reasons=list(reasons),
        others=list(others),
        left_out=sum(each.left_out for each in estimates),
    )
