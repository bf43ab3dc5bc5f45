"""A measure of the opinions over time: its mean over runs, with a band."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.ticker import MaxNLocator

from opinionsim import metrics
from opinionsim.errors import SpecError
from opinionsim.plots._courses import Course, Courses, Source, courses_of, stacked
from opinionsim.plots._style import LINES, model_colours, new_axes, set_heading, tidy

__all__ = ["RibbonData", "draw_ribbons", "interval", "ribbon_data", "ribbons", "say_band"]

#: Characters a line of the legend may have.
_NAME_WIDTH = 30


@dataclass(frozen=True, eq=False)
class RibbonData:
    """What a figure of ribbons shows.

    Attributes
    ----------
    frame : DataFrame
        One row a condition and moment: ``cell, step, mean, low, high, n_runs, evidence``. ``n_runs`` runs have a
        value then; ``low`` and ``high`` are NaN for fewer than two.
    measure : str
        Name of the measure.
    unit : str
        What ``step`` counts: ``step`` or ``sweep``.
    band : str
        What the band is, in words; empty where no condition has two runs.
    evidence : str
        What kind of evidence the runs are, in words.
    notes : tuple of str
        What all runs share, and what is known of the instruments.
    """

    frame: pd.DataFrame
    measure: str
    unit: str
    band: str
    evidence: str
    notes: tuple[str, ...]


def interval(values: np.ndarray, band: str, level: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Mean, ends of the band, and number of runs, each (K,), of values (R, K) that are NaN where a run has none."""
    known = ~np.isnan(values)
    n = known.sum(axis=0)
    mean, low, high = np.full((3, values.shape[1]), np.nan)
    some, several = n > 0, n > 1
    mean[some] = np.nanmean(values[:, some], axis=0)
    if several.any() and band == "runs":
        tails = [(1 - level) / 2, (1 + level) / 2]
        low[several], high[several] = np.nanquantile(values[:, several], tails, axis=0)
    elif several.any():
        found = metrics.bootstrap_interval(values[:, several], level=level)
        low[several], high[several] = found.low, found.high
    return mean, low, high, n


def say_band(band: str, level: float) -> str:
    """What a band is, in words.

    Raises
    ------
    SpecError
        If there is no such band, or the level is not between 0 and 1.
    """
    if band not in ("runs", "mean"):
        raise SpecError(
            f"band must be 'runs', the middle of the runs, or 'mean', an interval of their mean; got {band!r}"
        )
    if not 0 < level < 1:
        raise SpecError(f"level must be between 0 and 1; got {level!r}")
    if band == "runs":
        return f"band: middle {100 * level:g}% of the runs"
    return f"band: {100 * level:g}% bootstrap interval of the mean"


def ribbon_data(
    source: Source,
    measure: str = "bias",
    kind: str | None = None,
    where: Mapping[str, Any] | None = None,
    by: str | Sequence[str] | None = None,
    band: Literal["runs", "mean"] = "runs",
    level: float = 0.9,
    wording: str | None = None,
    **options: Any,
) -> RibbonData:
    """The numbers of a figure of ribbons.

    Parameters
    ----------
    source : Results, Frames, Trajectories, sequence or mapping of Trajectories
        Complete runs of a store, each cell a condition; or simulations of classic models, each a condition named
        by its model and what it differs in, or by its key in a mapping.
    measure : str
        Key of :data:`opinionsim.metrics.MEASURES`, taken of the agents that have an opinion.
    kind : str, optional
        Kind of text the opinions were coded from; default the first present of report, response, post, probe,
        self-report. Of a store alone, as `where`, `by` and `wording`.
    where : mapping, optional
        Column of ``runs`` to the value it must have.
    by : str or sequence of str, optional
        Columns of ``runs`` that make a condition; topics may differ within one. Default each cell.
    band : {"runs", "mean"}
        The middle part of the runs, from quantile to quantile; or a bootstrap interval of their mean.
    level : float
        What part of the runs, or which confidence level.
    wording : str, optional
        Wording of the prompts whose runs are drawn, by its hash or a start of it; default that of the run begun last
        (:func:`opinionsim.metrics.one_wording`). Notes say how many runs of others are left out.
    **options
        Of the measure.

    Returns
    -------
    RibbonData
        Each run counts once; a run that has ended, or where the measure is undefined, is left out of the mean.

    Raises
    ------
    SpecError
        If there is nothing to draw, a name is not valid or conditions would be mixed.
    MeasurementError
        If there is no such measure, or it cannot be taken.
    """
    told = say_band(band, level)
    courses = courses_of(source, kind, where, by, wording)
    parts = [_line(name, runs, courses, measure, band, level, options) for name, runs in courses.cells.items()]
    frame = pd.concat(parts, ignore_index=True)
    return RibbonData(
        frame, measure, courses.unit, told if (frame["n_runs"] > 1).any() else "", courses.evidence, courses.notes
    )


def _line(
    name: str,
    runs: Sequence[Course],
    courses: Courses,
    measure: str,
    band: str,
    level: float,
    options: Mapping[str, Any],
) -> pd.DataFrame:
    times, values = stacked(runs, [_measured(run, courses, measure, options) for run in runs])
    mean, low, high, n = interval(values, band, level)
    columns = {"mean": mean, "low": low, "high": high, "n_runs": n}
    return pd.DataFrame({"cell": name, "step": times, **columns, "evidence": runs[0].evidence})


def _measured(run: Course, courses: Courses, measure: str, options: Mapping[str, Any]) -> np.ndarray:
    """The measure at each moment of a run, (K,)."""
    passed: dict[str, Any] = dict(options)
    if np.isfinite(courses.span).all():
        passed["range"] = courses.span
    if run.network is not None:
        passed["network"] = run.network
    return metrics.measure_opinions(run.values, [measure], **passed)[measure]


def draw_ribbons(data: RibbonData, ax: Axes) -> None:
    """Draw a line a condition, and its band where it has several runs."""
    colours = model_colours(data.frame["cell"])
    for place, (name, part) in enumerate(data.frame.groupby("cell", sort=False)):
        colour, step = colours[str(name)], part["step"].to_numpy(float)
        n = part["n_runs"].max()
        label = f"{fill(str(name), _NAME_WIDTH)} ({n} run{'s' if n > 1 else ''})"
        if n > 1:
            ax.fill_between(step, part["low"], part["high"], color=colour, alpha=0.18, linewidth=0)
        ax.plot(step, part["mean"], color=colour, linestyle=LINES[place % len(LINES)], linewidth=1.7, label=label)
    ax.set_xlim(data.frame["step"].min(), max(data.frame["step"].max(), 1))
    ax.xaxis.set_major_locator(MaxNLocator(nbins=7, integer=True))
    ax.grid(axis="y", color="#E4E4E4", linewidth=0.8)
    ax.set_xlabel(data.unit, fontsize=9)
    ax.set_ylabel(f"{data.measure.replace('_', ' ')}: {metrics.MEASURES[data.measure].meaning}", fontsize=9)
    tidy(ax)


def ribbons(
    source: Source,
    measure: str = "bias",
    kind: str | None = None,
    where: Mapping[str, Any] | None = None,
    by: str | Sequence[str] | None = None,
    band: Literal["runs", "mean"] = "runs",
    level: float = 0.9,
    ax: Axes | None = None,
    legend: bool = True,
    wording: str | None = None,
    **options: Any,
) -> Axes:
    """Draw a measure of the opinions against time: the mean over runs, with a band, one line a condition.

    Parameters
    ----------
    source, measure, kind, where, by, band, level, wording, **options
        As for :func:`ribbon_data`.
    ax : Axes, optional
        Where to draw; default axes on a new figure (``ax.figure``).
    legend : bool
        Name the lines and the band to the right of the axes.

    Returns
    -------
    Axes
        The title states the evidence and what all runs share.

    Raises
    ------
    SpecError, MeasurementError
        As for :func:`ribbon_data`.
    """
    data = ribbon_data(source, measure, kind, where, by, band, level, wording, **options)
    ax = new_axes(8.4, 4.2) if ax is None else ax
    draw_ribbons(data, ax)
    set_heading(ax, [data.evidence, *data.notes])
    if legend:
        box = ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize=8.5, frameon=False, handlelength=2.8)
        box.set_title(fill(f"mean of runs; {data.band}", _NAME_WIDTH) if data.band else "", FontProperties(size=8.5))
    return ax
