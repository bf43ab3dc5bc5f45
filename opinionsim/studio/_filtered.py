"""Results with only some of their runs or units, or read by another instrument."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from opinionsim.analysis import read_by
from opinionsim.errors import SpecError
from opinionsim.metrics import order_levels
from opinionsim.store import ExperimentRun, Results
from opinionsim.studio._kept_frames import kept
from opinionsim.watching import level_labels


def filtered(
    results: Results, where: Mapping[str, str] = {}, instrument: str = "", folder: Path | None = None
) -> Results:
    """Return results with only the runs or units of work that have some values.

    Parameters
    ----------
    results : Results
        The results.
    where : mapping of str to str
        Swept axis, or other column of the frame ``runs``, to the value that runs must have there, as a text: a text as
        it is, anything else as JSON.
    instrument : str
        Classifier or id of the instrument whose readings are the opinions, as for :func:`opinionsim.analysis.read_by`;
        empty for that of each cell. The frames are then read anew.
    folder : Path, optional
        As for :func:`opinionsim.studio.kept`.

    Raises
    ------
    SpecError
        If there is no such column, value or instrument; the message names the valid ones. If no run has all values.
    """
    if instrument:
        results = kept(read_by(results, instrument), folder)
    if not where:
        return results
    if results.design_row.units:
        return _some_units(results, where)
    rows, runs = results.design_row.rows, results.runs
    chosen = pd.Series(True, runs.index)
    for column, value in where.items():
        labels = _labels(column, rows, runs)
        if not (labels == value).any():
            valid = ", ".join(map(str, order_levels(labels)))
            raise SpecError(f"no run has {column} = {value!r}; valid: {valid}")
        chosen &= labels == value
    if not chosen.any():
        raise SpecError(f"no run has all of {', '.join(f'{column} = {value!r}' for column, value in where.items())}")
    design = replace(results.design_row, runs=tuple(row for row, own in zip(rows, chosen, strict=True) if own))
    counted = dict(zip(("runs", "opinions", "agents", "acts"), results.counted(), strict=True))
    shown = runs[chosen]
    keys = pd.MultiIndex.from_frame(shown[["run_id", "cell"]])
    frames = {name: frame[frame["run_id"].isin(shown["run_id"])] for name, frame in counted.items()}
    for name in ("runs", "opinions"):
        # Cells that differ in how they are measured share runs.
        frames[name] = frames[name][pd.MultiIndex.from_frame(frames[name][["run_id", "cell"]]).isin(keys)]
    frames = {name: frame.reset_index(drop=True) for name, frame in frames.items()}
    return Results(results.url, design, results.designs, results.under_way, frames, own_parts=results.own_parts)


def _some_units(results: Results, where: Mapping[str, str]) -> Results:
    """Results with the units of work that have some values."""
    design = results.design_row
    units = [unit for unit in design.units if where.items() <= level_labels(unit[1]).items()]
    if not units:
        raise SpecError(f"no unit has all of {', '.join(f'{axis} = {label!r:.60}' for axis, label in where.items())}")
    design = replace(design, manifest={**design.manifest, "units": units})
    return Results(results.url, design, results.designs, results.under_way, own_parts=results.own_parts)


def _labels(column: str, rows: Sequence[ExperimentRun], runs: pd.DataFrame) -> pd.Series[Any]:
    """The values of all runs on an axis or in a column as texts; None where there is none."""
    axes = [level_labels(row.axes) for row in rows]
    if any(column in own for own in axes):
        return pd.Series([own.get(column) for own in axes], runs.index, dtype=object)
    if column not in runs.columns:
        valid = ", ".join(dict.fromkeys([*(axis for own in axes for axis in own), *map(str, runs.columns)]))
        raise SpecError(f"runs have no column {column!r}; valid: {valid}")
    values = runs[column].astype(object)
    return values.map(lambda value: level_labels({column: value})[column], na_action="ignore")
