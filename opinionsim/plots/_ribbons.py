"""A metric of the opinions over time: its mean over runs, with a band."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import fill
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from opinionsim import drawing, metrics
from opinionsim.plots._arrangement import facets
from opinionsim.plots._inputs import FigureNumbers
from opinionsim.plots._over_time import Source, Trajectory, TrajectorySet, stacked, trajectories_of
from opinionsim.plots._shown import Shown, conditions, over_time
from opinionsim.registry import part
from opinionsim.store import Mark, Results

#: Characters a line of the legend may have.
_NAME_WIDTH = 30
#: Inches of the height of axes on a narrow page.
_HEIGHT = 1.7


@dataclass(frozen=True, eq=False)
class RibbonData(FigureNumbers):
    """Data of a figure of ribbons.

    Attributes
    ----------
    frame : DataFrame
        One row per condition and moment: ``cell, step, mean, low, high, n_runs, evidence``. ``n_runs`` runs have a
        value at this moment; for an interval of the mean, runs of one block count once. ``low`` and ``high`` are NaN
        for fewer than eight runs.
    runs : DataFrame
        The runs of conditions with two to seven runs, which are drawn one by one: ``cell, run_id, step, value``.
    metric : str
        Name of the metric.
    band : str
        Meaning of the band, in words; empty where no condition has two runs.
    evidence : str
        Kind of evidence the runs are, in words.
    notes : tuple of str
        Settings that all runs share, and the validation of the instruments.
    events : tuple of Mark
        Steps at which events of any condition begin, and their names.
    facets : Facets or None
        Places of the conditions in a grid that follows their factors; None where they share one panel.
    """

    runs: pd.DataFrame
    metric: str
    band: str
    events: tuple[Mark, ...] = ()
    facets: drawing.Facets | None = None


def ribbon_data(
    source: Source,
    metric: str = "bias",
    kind: str | None = None,
    where: Mapping[str, Any] | None = None,
    by: str | Sequence[str] | None = None,
    band: Literal["runs", "mean"] = "runs",
    level: float = 0.9,
    wording: str | None = None,
    rows: str | None = None,
    columns: str | None = None,
    **options: Any,
) -> RibbonData:
    """Return the data of a figure of ribbons.

    Parameters
    ----------
    source : Results, Frames, SimulatedRuns, sequence or mapping of SimulatedRuns
        Complete runs of a store, each cell a condition; or simulations, each a condition named
        by its model and the settings that differ, or by its key in a mapping.
    metric : str
        Key of :data:`opinionsim.metrics.METRICS`, computed from the agents that have an opinion.
    kind : str, optional
        Kind of text the opinions were coded from; default the first that was measured, in the order of the column
        `texts` of runs. Only for a store, as are `where`, `by` and `wording`.
    where : mapping, optional
        Column of ``runs`` to the value it must have.
    by : str or sequence of str, optional
        Columns of ``runs`` that define a condition; topics may differ within one. Default: each cell is a condition.
    band : {"runs", "mean"}
        Interval between two quantiles of the runs, or t interval of their mean; conditions of fewer than eight runs
        have none.
    level : float
        Share of the runs in the band, or confidence level.
    wording : str, optional
        Wording of the prompts whose runs are drawn, by its hash or a start of it; default that of the run that began
        last (:func:`opinionsim.metrics.one_wording`). Notes say how many runs of other wordings are left out.
    rows, columns : str, optional
        Columns of ``runs`` that vary down and across panels. Default: one panel if one factor varies. If two
        vary, one varies across panels and each level of the other is a line. If more vary, two form a grid.
    **options
        Options of the metric.

    Returns
    -------
    RibbonData
        Each run counts once. A line begins where most agents of each run of the condition have an opinion, because
        a few agents say little about all; if that is after the start, a note says where. Runs in which most agents
        never have one set no limit. The mean leaves out runs that have ended and runs with an undefined metric.

    Raises
    ------
    SpecError
        If there is nothing to draw, a name is not valid or conditions would be mixed.
    MeasurementError
        If there is no such metric, or it cannot be computed.
    """
    metrics.say_band(band, level)
    drawn = trajectories_of(source, kind, where, by, wording)
    grid = facets(drawn.factors, rows, columns, lines=True)
    parts = [_line(name, runs, drawn, metric, band, level, options) for name, runs in drawn.cells.items()]
    frame, own = (pd.concat(each, ignore_index=True) for each in zip(*parts, strict=True))
    band_told = metrics.say_band(band, level, frame.groupby("cell")["n_runs"].max())
    steps = sorted({_begin(runs) for runs in drawn.cells.values()})
    begin = f"step {steps[0]}" if len(steps) == 1 else f"steps {steps[0]} to {steps[-1]}"
    late = (f"lines begin where most agents of each run have an opinion: {begin}",) if steps[-1] else ()
    events = dict.fromkeys(mark for runs in drawn.cells.values() for run in runs for mark in run.events)
    notes = (*drawn.notes, *late, *([drawn.averaged] if grid else ()))
    return RibbonData(frame, drawn.evidence, notes, own, metric, band_told, tuple(events), grid)


def _begin(runs: Sequence[Trajectory]) -> int:
    """The first step at which most agents of each run have an opinion, of runs in which most ever have one."""
    most = [(~np.isnan(run.values)).mean(axis=1) > 0.5 for run in runs]
    return max((int(run.times[np.argmax(own)]) for run, own in zip(runs, most, strict=True) if own.any()), default=0)


def _line(
    name: str,
    runs: Sequence[Trajectory],
    drawn: TrajectorySet,
    metric: str,
    band: str,
    level: float,
    options: Mapping[str, Any],
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The line of a condition, and its runs where these are too few for a band."""
    times, values = stacked(runs, [_measured(run, drawn, metric, options) for run in runs])
    values = np.where(times < _begin(runs), np.nan, values)
    limits = metrics.limits_of(metric, *drawn.span, options.get("ddof", 0))
    mean, low, high, n = metrics.run_band(values, band, level, [run.block for run in runs], limits)
    columns = {"mean": mean, "low": low, "high": high, "n_runs": n}
    few = [run.run_id for run in runs] if 1 < n.max() < metrics.LEAST_RUNS else []
    at = {"run_id": np.repeat(few, len(times)), "step": np.tile(times, len(few))}
    line = pd.DataFrame({"cell": name, "step": times, **columns, "evidence": runs[0].evidence})
    return line, pd.DataFrame({"cell": name, **at, "value": values[: len(few)].ravel()})


def _measured(run: Trajectory, drawn: TrajectorySet, metric: str, options: Mapping[str, Any]) -> np.ndarray:
    """The metric at each moment of a run, (K,)."""
    passed: dict[str, Any] = dict(options)
    if np.isfinite(drawn.span).all():
        passed["range"] = drawn.span
    if run.network is not None:
        passed["network"] = run.network
    return metrics.compute_metrics(run.values, [metric], **passed)[metric]


def draw_ribbons(data: RibbonData, ax: Axes, colours: Mapping[str, str], names: Mapping[str, str]) -> None:
    """Draw a line for each condition in the colour of its name, and a band, or its few runs."""
    for name, line in data.frame.groupby("cell", sort=False):
        label, step = names[str(name)], line["step"].to_numpy(float)
        look: dict[str, Any] = {"color": colours[label], "linestyle": drawing.line_style(list(colours).index(label))}
        few = data.runs[data.runs["cell"] == name].dropna().groupby("run_id", sort=False)[["step", "value"]]
        if len(few):
            paths = [run.to_numpy(float) for _, run in few]
            ax.add_collection(LineCollection(paths, colors=colours[label], linewidths=0.6, alpha=0.6))
        if line["n_runs"].max() >= metrics.LEAST_RUNS:
            ax.fill_between(step, line["low"], line["high"], color=colours[label], alpha=0.18, linewidth=0)
        ax.plot(step, line["mean"], linewidth=1.7, label=label, **look)
    drawing.draw_marks(ax, data.events)
    ax.set_xlim(data.frame["step"].min(), max(data.frame["step"].max(), 1))
    drawing.time_axis(ax)


def _shown(results: Results) -> Iterator[Shown]:
    if over_time(results):
        by = conditions(results)
        yield Shown("ribbons", settings={"by": by})
        yield Shown("diversity", settings={"metric": "diversity", "by": by})


@part("figure", name="ribbons", numbers=ribbon_data, shown=_shown)
def ribbons(
    source: Source,
    metric: str = "bias",
    kind: str | None = None,
    where: Mapping[str, Any] | None = None,
    by: str | Sequence[str] | None = None,
    band: Literal["runs", "mean"] = "runs",
    level: float = 0.9,
    ax: Axes | None = None,
    legend: bool = True,
    wording: str | None = None,
    rows: str | None = None,
    columns: str | None = None,
    **options: Any,
) -> Axes:
    """Draw a metric of the opinions against time: the mean over runs, with a band, one line per condition.

    Parameters
    ----------
    source, metric, kind, where, by, band, level, wording, rows, columns, **options
        As for :func:`ribbon_data`.
    ax : Axes, optional
        Where to draw all lines; default a new figure (``ax.figure``), with several panels if several factors
        vary.
    legend : bool
        Name the lines, the band and the lines of single runs, to the right of a single panel or below several.

    Returns
    -------
    Axes
        The first panel; all have the same axes. The caption states the settings that all runs share.

    Raises
    ------
    SpecError, MeasurementError
        As for :func:`ribbon_data`.
    """
    data = ribbon_data(source, metric, kind, where, by, band, level, wording, rows, columns, **options)
    label = metrics.find_metric(data.metric).label
    lines = [data.evidence, f"{label} over time, averaged over the runs of each condition", data.band, *data.notes]
    if data.facets is not None and ax is None:
        return _in_panels(data, data.facets, label, lines, legend=legend)
    counts = data.frame.groupby("cell", sort=False)["n_runs"].max()
    names = {str(name): f"{fill(str(name), _NAME_WIDTH)} ({n} run{'s' if n > 1 else ''})" for name, n in counts.items()}
    ax = drawing.new_axes(8.4, 4.2) if ax is None else ax
    draw_ribbons(data, ax, drawing.model_colours(names.values()), names)
    ax.set_ylabel(drawing.heading([label], _HEIGHT), fontsize=drawing.pt(9))
    if legend:
        handles = [*ax.get_legend_handles_labels()[0], *drawing.band_handles(data.band)]
        drawing.legend_beside(ax, "mean of runs" if data.band else "", handles=handles, handlelength=2.8)
    drawing.set_heading(ax, lines)
    return ax


def _in_panels(data: RibbonData, grid: drawing.Facets, label: str, lines: Sequence[str], *, legend: bool) -> Axes:
    """Draw the conditions in a grid of panels of equal axes, and return the first."""
    parts = dict(list(data.frame.groupby("cell", sort=False)))
    figure, axes = drawing.new_panels([str(name) for name in parts], lines, (3.4, 2.8), grid)
    colours = drawing.model_colours(grid.within.values())
    for ax in dict.fromkeys(axes):
        own = [line for line, panel in zip(parts.values(), axes, strict=True) if panel is ax]
        draw_ribbons(replace(data, frame=pd.concat(own)), ax, colours, grid.within)
        drawing.name_outer(ax, axes, "step", drawing.heading([label], _HEIGHT))
    low, high = min(ax.get_ylim()[0] for ax in axes), max(ax.get_ylim()[1] for ax in axes)
    for ax in axes:
        ax.set(xlim=(data.frame["step"].min(), max(data.frame["step"].max(), 1)), ylim=(low, high))
        ax.tick_params(labelleft=not drawing.unused(ax, axes)[0])
    named = axes[0].get_legend_handles_labels()[0] if len(colours) > 1 else []
    if legend and (named or data.band):
        drawing.legend_below(figure, [*named, *drawing.band_handles(data.band)])
    return axes[0]
