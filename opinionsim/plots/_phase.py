"""A metric of final opinions, over the parameters that were swept."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from opinionsim import metrics
from opinionsim.classic import MODELS
from opinionsim.errors import SpecError
from opinionsim.evidence import evidence_statement
from opinionsim.plots._inputs import (
    HasFrames,
    axis_name,
    check_columns,
    mentioning,
    of_one_wording,
    read_for_stance,
    topic_titles,
)
from opinionsim.plots._over_time import of_runs, select, setting_text
from opinionsim.plots._ribbons import interval, say_band
from opinionsim.plots._style import INK, SHARES, colour_bar, new_axes, opinion_map, set_heading, signed, tidy

#: Most places of a diagram with printed numbers, and most levels named at an axis.
_MOST_PRINTED, _MOST_NAMED = 64, 11
#: Characters below an axis that stand side by side.
_LINE_WIDTH = 55


@dataclass(frozen=True, eq=False)
class PhaseData:
    """Data of a phase diagram.

    Attributes
    ----------
    frame : DataFrame
        One row a crossing of levels: the columns `x` and `y`, ``mean, low, high, n_runs, evidence``. ``low`` and
        ``high`` are NaN for fewer than two runs; runs without a value are not counted.
    x, y : str, and str or None
        The swept parameters.
    value : str
        Name of the metric or column.
    label : str
        Its name in words.
    band : str
        Meaning of ``low`` and ``high``, in words; empty where no crossing has two runs.
    evidence : str
        Kind of evidence the runs are, in words.
    notes : tuple of str
        Settings that all runs share, the number of runs, and the validation of the instruments.
    titles : dict of str to str
        Titles of topics by name, for an axis of topics.
    """

    frame: pd.DataFrame
    x: str
    y: str | None
    value: str
    label: str
    band: str
    evidence: str
    notes: tuple[str, ...]
    titles: Mapping[str, str] = field(default_factory=dict)


def phase_data(
    source: HasFrames | pd.DataFrame,
    x: str,
    y: str | None = None,
    value: str = "diversity",
    where: Mapping[str, Any] | None = None,
    kind: str | None = None,
    band: Literal["runs", "mean"] = "runs",
    level: float = 0.9,
    wording: str | None = None,
) -> PhaseData:
    """The numbers of a phase diagram.

    Parameters
    ----------
    source : Results, Frames or DataFrame
        Complete runs of a store; or a frame with one row a run, as :func:`opinionsim.classic.sweep` gives it: swept
        parameters, metrics, ``evidence``, and ``replicate`` where there are several. Its column or attribute
        ``model``, and its attributes ``n``, ``steps`` and ``parameters``, are stated in the title if present.
    x, y : str
        Columns of ``runs`` or of the frame that were swept; without `y` the diagram is a line.
    value : str
        For a store a key of :data:`opinionsim.metrics.METRICS`, computed from final opinions; for a frame a column.
    where : mapping, optional
        Column of ``runs`` or of the frame to the value it must have.
    kind : str, optional
        Kind of text the opinions of a store were coded from.
    band : {"runs", "mean"}
        Interval between two quantiles of the runs, or bootstrap interval of their mean.
    level : float
        Share of the runs in the band, or confidence level.
    wording : str, optional
        Wording of the prompts whose runs are drawn from a store, as for :func:`opinionsim.plots.ribbon_data`.

    Returns
    -------
    PhaseData
        Each run counts once.

    Raises
    ------
    SpecError
        If a column or wording does not exist, a column holds no numbers, no run is left, or runs differ in something
        other than `x` and `y`: choose one level by `where`. Topics and replicates of a store may differ.
    MeasurementError
        If there is no such metric, or it cannot be computed.
    """
    told = say_band(band, level)
    axes = [x] if y is None else [x, y]
    if len(set(axes)) < len(axes):
        raise SpecError(f"x and y must be two different columns; got {x!r} twice")
    if isinstance(source, pd.DataFrame):
        if kind is not None or wording is not None:
            raise SpecError("kind and wording choose runs of a store; a frame with one row a run is drawn whole")
        table, notes = _of_frame(source, axes, value, where or {})
        label = axis_name(value)
    else:
        table, notes = _of_store(source, axes, value, where or {}, kind, wording)
        label = f"{axis_name(value)}: {metrics.find_metric(value).meaning}"
    if table[axes].isna().any(axis=None):
        table = table.dropna(subset=axes)
        notes.append(f"runs without a level of {' and '.join(map(axis_name, axes))} left out")
    if table.empty:
        raise SpecError(f"no run has levels of {' and '.join(axes)}")
    rows = []
    for levels, part in table.groupby(axes, sort=False):
        mean, low, high, n = interval(part["value"].to_numpy(float)[:, None], band, level)
        ends = {"mean": mean[0], "low": low[0], "high": high[0], "n_runs": n[0]}
        kinds = " + ".join(dict.fromkeys(part["evidence"]))
        rows.append(dict(zip(axes, levels, strict=True)) | ends | {"evidence": kinds})
    frame = metrics.in_order(pd.DataFrame(rows), axes).reset_index(drop=True)
    return PhaseData(
        frame,
        x,
        y,
        value,
        label,
        told if (frame["n_runs"] > 1).any() else "",
        evidence_statement(table["evidence"]),
        (*notes, _counted(frame, "replicates" if _is_sweep(source) else "runs")),
        topic_titles(source if isinstance(source, pd.DataFrame) else source.runs) if "topic" in axes else {},
    )


def _counted(frame: pd.DataFrame, what: str) -> str:
    low, high = int(frame["n_runs"].min()), int(frame["n_runs"].max())
    if high == 1 and low == 1:
        return f"one {what[:-1]} a point"
    return f"mean of {high} {what} a point" if low == high else f"mean of {low} to {high} {what} a point"


def _is_sweep(source: HasFrames | pd.DataFrame) -> bool:
    """Whether a source is a frame from :func:`opinionsim.classic.sweep`."""
    return isinstance(source, pd.DataFrame) and "model" in source.attrs and "replicate" in source.columns


def _simulated(runs: pd.DataFrame, axes: Sequence[str], known: Collection[str]) -> str:
    """Model, size, length and constant settings of the runs of a frame, as far as its columns and attributes say.

    `known` names columns whose level is stated already.
    """
    attributes, stated = runs.attrs if "model" in runs.attrs else {}, {*axes, *known}
    columns = {str(column): runs[column].unique().tolist() for column in _settings(runs) if column not in stated}
    constant = {column: levels[0] for column, levels in columns.items() if len(levels) == 1}
    constant |= {name: value for name, value in attributes.get("parameters", {}).items() if name not in runs.columns}
    parts = []
    if "model" not in (*stated, *runs.columns):
        constant = {"model": attributes.get("model"), **constant}
    if constant.get("model") is not None:
        parts.append(str(constant["model"]))
    counted = {"n": "agents", "steps": "steps"}
    parts += [f"{attributes[name]:,} {what}" for name, what in counted.items() if name in attributes]
    return ", ".join([*parts, *(f"{axis_name(k)} {setting_text(v)}" for k, v in constant.items() if k != "model")])


def _settings(runs: pd.DataFrame) -> list[str]:
    """Columns that are known to hold the model and its settings, not metrics."""
    models = runs["model"].unique().tolist() if "model" in runs.columns else [runs.attrs.get("model")]
    declared = {"model"}
    for model in models:
        if model in MODELS:
            declared |= {*MODELS[model].declared, *MODELS[model].schemes}
    return [column for column in map(str, runs.columns) if column in declared]


def _of_frame(
    frame: pd.DataFrame, axes: Sequence[str], value: str, where: Mapping[str, Any]
) -> tuple[pd.DataFrame, list[str]]:
    """Levels, value and evidence of each row."""
    for column in (*axes, value, "evidence"):
        if column not in frame.columns:
            raise SpecError(f"the frame has no column {column!r}; it has {', '.join(map(str, frame.columns))}")
    if not pd.api.types.is_numeric_dtype(frame[value]):
        raise SpecError(f"column {value!r} must hold numbers; it holds {frame[value].dtype}")
    chosen = select(frame, where)
    repeats = [column for column in ("replicate", "seed") if column in chosen.columns and column not in axes]
    if repeats and chosen.duplicated([*axes, *repeats]).any():
        vary = [name for name in _settings(chosen) if name not in axes and chosen[name].nunique() > 1]
        raise SpecError(
            f"several rows agree in {', '.join([*axes, *repeats])}, so {' and '.join(vary) or 'something else'} varied "
            "too; choose a level by where"
        )
    table = chosen[[*axes, "evidence"]].assign(value=chosen[value])
    held = [f"{axis_name(column)}: {chosen_value}" for column, chosen_value in where.items()]
    told = [_simulated(chosen, axes, tuple(where)), ", ".join(held)]
    return table, [text for text in told if text]


def _of_store(
    results: HasFrames, axes: Sequence[str], value: str, where: Mapping[str, Any], kind: str | None, wording: str | None
) -> tuple[pd.DataFrame, list[str]]:
    """Levels, metric of the final opinions, and evidence of each run."""
    if not hasattr(results, "runs"):
        raise SpecError(f"a phase diagram is drawn from Results, Frames or a DataFrame; got {type(results).__name__}")
    taken, others = of_one_wording(results.runs, where, wording)
    with mentioning(others):
        chosen = select(taken, where)
    runs, unread = read_for_stance(chosen, kind)
    check_columns(runs, axes)
    known = runs.dropna(subset=list(axes))
    if known.empty:
        raise SpecError(f"no complete run has levels of {' and '.join(axes)}")
    metrics.check_conditions(known, list(axes))
    drawn = of_runs(results, known.assign(condition=np.arange(len(known)).astype(str)), kind)
    finals = [runs_of[0] for runs_of in drawn.cells.values()]
    measured = [float(metrics.compute_metrics(run.values[-1], [value], range=drawn.span)[value]) for run in finals]
    notes = [*drawn.notes, *filter(None, [unread, others])]
    pooled = known.groupby(list(axes))["topic"].nunique().max()
    if pooled > 1:
        notes.append(f"up to {pooled} topics a point")
    if len(known) < len(runs):
        notes.append(f"{len(runs) - len(known)} runs without a level of {' and '.join(map(axis_name, axes))} left out")
    return known[[*axes, "evidence"]].assign(value=measured), notes


def draw_phase(data: PhaseData, ax: Axes) -> Any:
    """Draw the diagram and return the mesh for a colour bar; None for a line over one parameter."""
    ax.set_xlabel(axis_name(data.x), fontsize=9)
    if data.y is None:
        return _draw_line(data, ax)
    across, up = (metrics.order_levels(data.frame[axis]) for axis in (data.x, data.y))
    table = np.full((len(up), len(across)), np.nan)
    rows = [up.index(level) for level in data.frame[data.y]]
    table[rows, [across.index(level) for level in data.frame[data.x]]] = data.frame["mean"]
    mesh = ax.pcolormesh(np.ma.masked_invalid(table), **_colours(table))
    ax.set_facecolor("#EFEFEF")
    for axis, levels in ((ax.xaxis, across), (ax.yaxis, up)):
        apart = -(-len(levels) // _MOST_NAMED)
        kept = np.arange(0, len(levels), apart)
        axis.set_ticks(kept + 0.5, [_name(levels[place], data) for place in kept])
    if sum(len(_name(level, data)) + 1 for level in across[:: -(-len(across) // _MOST_NAMED)]) > _LINE_WIDTH:
        ax.tick_params(axis="x", rotation=35)
    ax.set_ylabel(axis_name(data.y), fontsize=9)
    if table.size <= _MOST_PRINTED:
        _print(table, mesh, ax)
    ax.tick_params(labelsize=8.5, length=2, color="#888888")
    ax.spines[:].set_visible(False)
    return mesh


def _colours(table: np.ndarray) -> dict[str, Any]:
    """Red to blue about 0 for values of both signs, else light to dark."""
    known = table[~np.isnan(table)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    most = max(abs(low), abs(high))
    # Differences that are rounding errors get no colours of their own.
    if high - low <= 1e-9 * most:
        return {"cmap": SHARES, "vmin": low - (most or 1), "vmax": high + (most or 1)}
    if low < 0 < high:
        return {"cmap": opinion_map(), "vmin": -most, "vmax": most}
    return {"cmap": SHARES, "vmin": low, "vmax": high}


def _print(table: np.ndarray, mesh: Any, ax: Axes) -> None:
    """Print numbers into the places that have one, light on dark."""
    most = float(np.nanmax(np.abs(table), initial=0))
    decimals = 1 if most >= 100 else 2 if most >= 0.1 else 4
    for row, column in zip(*np.nonzero(~np.isnan(table)), strict=True):
        red, green, blue, _ = mesh.cmap(mesh.norm(table[row, column]))
        dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
        ax.text(
            column + 0.5, row + 0.5, signed(table[row, column], decimals), ha="center", va="center", fontsize=8,
            color="white" if dark else "#222222",
        )  # fmt: skip


def _name(level: Any, data: PhaseData) -> str:
    """Name of a level at an axis."""
    if level in data.titles:
        return data.titles[level]
    number = isinstance(level, float | np.floating)
    return f"{level:g}".replace("-", "\N{MINUS SIGN}") if number else str(level)


def _draw_line(data: PhaseData, ax: Axes) -> None:
    """Draw the mean over one parameter, with a band; levels that are no numbers are spaced evenly."""
    levels = data.frame[data.x]
    numeric = pd.api.types.is_numeric_dtype(levels) and not pd.api.types.is_bool_dtype(levels)
    at = levels.to_numpy(float) if numeric else np.arange(len(levels), dtype=float)
    mean, low, high = (data.frame[name].to_numpy(float) for name in ("mean", "low", "high"))
    several = ~np.isnan(low)
    if numeric:
        ax.fill_between(at, low, high, color=INK, alpha=0.22, linewidth=0)
        ax.plot(at, mean, color=INK, linewidth=1.7, marker="o", markersize=3.5)
    else:
        ax.vlines(at[several], low[several], high[several], color=INK, alpha=0.35, linewidth=7)
        ax.plot(at, mean, color=INK, linestyle="none", marker="o", markersize=5)
        ax.set_xticks(at, [_name(level, data) for level in levels])
        ax.set_xlim(-0.6, len(at) - 0.4)
    ax.set_ylabel(data.label, fontsize=9)
    ax.grid(axis="y", color="#E4E4E4", linewidth=0.8)
    tidy(ax)


def phase_diagram(
    source: HasFrames | pd.DataFrame,
    x: str,
    y: str | None = None,
    value: str = "diversity",
    where: Mapping[str, Any] | None = None,
    kind: str | None = None,
    band: Literal["runs", "mean"] = "runs",
    level: float = 0.9,
    ax: Axes | None = None,
    wording: str | None = None,
) -> Axes:
    """Draw a metric of final opinions over one or two swept parameters.

    Parameters
    ----------
    source, x, y, value, where, kind, band, level, wording
        As for :func:`phase_data`.
    ax : Axes, optional
        Where to draw; default axes on a new figure (``ax.figure``).

    Returns
    -------
    Axes
        For two parameters a map with one place for each crossing of levels, of equal size, grey where there is no run;
        for one parameter a line with a band. The title states the evidence and the number of runs.

    Raises
    ------
    SpecError, MeasurementError
        As for :func:`phase_data`.
    """
    data = phase_data(source, x, y, value, where, kind, band, level, wording)
    ax = new_axes(6.6, 4.6) if ax is None else ax
    mesh = draw_phase(data, ax)
    if mesh is not None:
        colour_bar(mesh, ax, data.label, pad=0.02, aspect=26)
    set_heading(ax, [data.evidence, *data.notes, data.band if y is None else ""])
    return ax
