"""A grid of conditions: trajectories next to final distributions, with controls below."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from opinionsim import metrics
from opinionsim.drawing import BAR, heading, is_narrow, legend_below, line_height, new_figure, page, pt
from opinionsim.opinions import OpinionScale
from opinionsim.plots import _inputs as inputs
from opinionsim.plots._arrangement import Spot, arrange
from opinionsim.plots._final import MEAN, FinalData, draw_final, from_trajectories
from opinionsim.plots._shown import Shown
from opinionsim.plots._trajectories import (
    TrajectoryData,
    colours_of,
    draw_trajectories,
    drawn_as,
    handles_of,
    trajectory_data,
)
from opinionsim.registry import part
from opinionsim.store import Results

#: Inches: width of the lines, width of the lines with the histogram, and height of a panel.
_LINES_WIDTH, _PANEL_WIDTH, _PANEL_HEIGHT = 4.0, 5.2, 2.15


@dataclass(frozen=True, eq=False)
class Panel:
    """One condition of the grid.

    Attributes
    ----------
    row, column : int
        Place in the grid, from 0 at the top left.
    title : str
        Condition of this panel; empty if row and column headings state it.
    run_id : str
        The run drawn.
    trajectory : TrajectoryData
        Data of its lines.
    final : FinalData or None
        Data of its histogram; None for controls, which are line panels.
    """

    row: int
    column: int
    title: str
    run_id: str
    trajectory: TrajectoryData
    final: FinalData | None


@dataclass(frozen=True, eq=False)
class PanelsData:
    """Data of a grid of panels.

    Attributes
    ----------
    panels : tuple of Panel
        One run per panel; places without a complete run are left out.
    n_rows, n_columns : int
        Size of the grid with the rows of controls.
    row_titles, column_titles : tuple of str
        Headings of the grid of conditions; empty if each panel has its own title.
    title : str
        Settings that all conditions share.
    note : str
        Replicate of the runs, the instrument and its validation, and conditions held at one value.
    evidence : str
        Kind of evidence the runs are, in words.
    """

    panels: tuple[Panel, ...]
    n_rows: int
    n_columns: int
    row_titles: tuple[str, ...]
    column_titles: tuple[str, ...]
    title: str
    note: str
    evidence: str


def panels_data(
    results: inputs.HasFrames,
    rows: str | None = None,
    columns: str | None = None,
    where: Mapping[str, Any] | None = None,
    replicate: int | None = None,
    kind: str | None = None,
    ddof: int = 0,
    wording: str | None = None,
) -> PanelsData:
    """Return the data of a grid of panels.

    Parameters
    ----------
    results : Results or Frames
        Frames of a store; only complete runs of cells with an instrument of stance are drawn.
    rows, columns : str, optional
        Columns of ``results.runs`` that vary down and across. Default: confirmation bias down and framing
        across where they vary, else the first conditions that do. A single varying condition is wrapped.
    where : mapping, optional
        Column of ``results.runs`` to the value to draw, as in ``{"topic": "global-warming"}``.
    replicate : int, optional
        Replicate to draw; default the first that has a complete run to draw.
    kind : str, optional
        Kind of text the opinions were coded from; default the first that was measured, in the order of the column
        `texts` of runs.
    ddof : int
        Correction of the standard deviation.
    wording : str, optional
        Wording of the prompts whose runs are drawn, as for :func:`opinionsim.plots.ribbon_data`.

    Returns
    -------
    PanelsData
        Conditions that vary in addition to rows and columns are held, one after the other, at the first level that
        is left, which the note states. If the conditions form no grid, as in a union of sweeps, and neither rows
        nor columns are given, each cell has a panel, titled by its condition; at most 12 are drawn, and the note counts
        the others.

    Raises
    ------
    SpecError
        If a column or wording does not exist, no complete run is left to draw, or a run has no such texts.
    """
    replicates = results.runs["replicate"].nunique()
    taken, others = inputs.of_one_wording(results, where or {}, wording)
    runs, _ = inputs.read_for_stance(taken, kind)
    if replicate is None:
        replicate = _first_replicate(runs, where or {})
    with inputs.mentioning(others):
        arrangement = arrange(runs, rows, columns, where or {}, replicate)
    _, unread = inputs.read_for_stance(inputs.matching(taken, {"replicate": replicate, **(where or {})}), kind)
    frames = inputs.Frames(
        runs, results.agents, metrics.stance_rows(runs, results.opinions), turns=inputs.acts_of(results)
    )
    every = [place.run for place in [*arrangement.places, *arrangement.controls]]
    used = frames.opinions["instrument_id"].isin([run["instrument_id"] for run in every])
    scale = metrics.scale_of_all(frames.opinions[used])
    drawn = [_panel(frames, place, kind, scale, ddof) for place in arrangement.places]
    drawn += [replace(_panel(frames, place, kind, scale, ddof), final=None) for place in arrangement.controls]
    shown = pd.DataFrame([place.run for place in arrangement.places])
    differing = tuple(str(column) for column in shown.columns if shown[column].nunique(dropna=False) > 1)
    which = f"each panel shows one run{f': replicate {replicate} (of {replicates})' if replicates > 1 else ''}"
    notes = [
        which,
        f"opinions are those of {', '.join(dict.fromkeys(panel.trajectory.instrument for panel in drawn))}",
        f"ddof {ddof}" if ddof else "",
        metrics.played_by((str(run["model"]) for run in every), (str(run["evidence"]) for run in every)),
        metrics.validation_statement(panel.trajectory.validation for panel in drawn),
        *arrangement.notes,
        unread,
        others,
        _apart(drawn),
        _never(drawn),
        metrics.outdated(every),
    ]
    return PanelsData(
        panels=tuple(drawn),
        n_rows=max(panel.row for panel in drawn) + 1,
        n_columns=arrangement.n_columns,
        row_titles=arrangement.row_titles,
        column_titles=arrangement.column_titles,
        title=metrics.describe(shown.iloc[0], without=differing),
        note="; ".join(filter(None, notes)),
        evidence=metrics.evidence_statement(str(run["evidence"]) for run in every),
    )


def _first_replicate(runs: pd.DataFrame, where: Mapping[str, Any]) -> int:
    """The lowest replicate with a complete run; if possible, with one that has the values in `where`."""
    complete = runs[runs["status"] == "complete"]
    found = inputs.matching(complete, where)["replicate"]
    return int((found if len(found) else complete["replicate"]).min()) if len(complete) else 0


def _apart(drawn: Sequence[Panel]) -> str:
    """Note on the lines that are displaced; empty if all or none are."""
    apart = {bool(panel.trajectory.offsets.any()) for panel in drawn if len(panel.trajectory.offsets) > 1}
    return "equal ratings are drawn apart, opinions of equations at their values" if len(apart) > 1 else ""


def _never(drawn: Sequence[Panel]) -> str:
    """Note on the number of agents without a line; empty if there are none."""
    silent = [np.isnan(panel.trajectory.values[:, -1]) for panel in drawn]
    n_never, n_agents = sum(int(mask.sum()) for mask in silent), sum(mask.size for mask in silent)
    return f"{n_never} of {n_agents} agents never measured" if n_never else ""


def _panel(results: inputs.Frames, place: Spot, kind: str | None, scale: OpinionScale, ddof: int) -> Panel:
    """The data of one panel."""
    same = results.runs[(results.runs["run_id"] == place.run["run_id"]) & (results.runs["cell"] == place.run["cell"])]
    trajectory = trajectory_data(inputs.Frames(same, *results[1:]), 0, kind, scale)
    final = from_trajectories(trajectory, ddof)
    return Panel(place.row, place.column, place.title, str(place.run["run_id"]), trajectory, final)


def _shown(results: Results) -> Iterator[Shown]:
    # A panel is of one run, which says little where that is one person.
    if (results.runs["n_agents"] > 1).any():
        yield Shown("panels")


@part("figure", name="panels", shown=_shown)
def panels(
    results: inputs.HasFrames,
    rows: str | None = None,
    columns: str | None = None,
    where: Mapping[str, Any] | None = None,
    replicate: int | None = None,
    kind: str | None = None,
    ddof: int = 0,
    color_by: Literal["opinion", "model"] = "opinion",
    wording: str | None = None,
) -> Figure:
    """Draw the conditions of an experiment side by side.

    Each condition has the trajectories of one run and next to them its final distribution on the same axis of
    opinions, with a dashed line at the mean. Controls without interaction follow below as line panels.

    Parameters
    ----------
    results, rows, columns, where, replicate, kind, ddof, wording
        As for :func:`panels_data`.
    color_by : {"opinion", "model"}
        Whether a line has the colour of the opinion its agent was assigned, or of the chat model that plays it.

    Returns
    -------
    Figure
        The caption states the settings that all panels share, the replicate, the instrument and its
        validation.

    Raises
    ------
    SpecError
        As for :func:`panels_data`.

    Notes
    -----
    Layout of Chuang et al. 2023: figures 4 and 6 for framing by confirmation bias with controls, figure 5
    for a sweep of initial distributions (A15).
    """
    data = panels_data(results, rows, columns, where, replicate, kind, ddof, wording)
    models = [name for panel in data.panels for name in panel.trajectory.models]
    of_models = colours_of(models, color_by)
    width = max(0.6 + _PANEL_WIDTH * data.n_columns, 7.2)
    scaled = page(width) / width
    deepest = max(_panel_title(panel, scaled).count("\n") for panel in data.panels)
    more = max(deepest - 1, 0) + 3 * is_narrow()
    height = 0.4 + data.n_rows * (line_height(more) + _PANEL_HEIGHT * scaled**0.5)
    what = "opinion of each agent over time, and the number of agents at each opinion at the end"
    ends = (
        "The dashed line is the mean opinion at the end. Diversity is the standard deviation of opinions over agents."
    )
    shared = f"all panels: {data.title}" if data.title else ""
    lines = [data.evidence, what, drawn_as(of_models), ends, shared, *data.note.split("; ")]
    figure = new_figure(lines, width, height)
    spec = figure.add_gridspec(data.n_rows, 2 * data.n_columns, width_ratios=[3, 1] * data.n_columns)
    first = figure.add_subplot(spec[data.panels[0].row, _across(data.panels[0])])
    for panel in data.panels:
        ax = first if panel is data.panels[0] else figure.add_subplot(spec[panel.row, _across(panel)], sharey=first)
        draw_trajectories(panel.trajectory, ax, words=False, of_models=of_models)
        _caption(ax, panel, data, scaled)
        if panel.final is not None:
            bars = figure.add_subplot(spec[panel.row, 2 * panel.column + 1], sharey=first)
            draw_final(panel.final, bars, horizontal=True)
            bars.tick_params(labelleft=False)
            bars.set_title("\n".join(panel.final.moments), fontsize=pt(8), loc="right")
            if _is_lowest(panel, [other for other in data.panels if other.final]):
                bars.set_xlabel("agents", fontsize=pt(8), loc="right")
    handles = handles_of([panel.trajectory for panel in data.panels], of_models, words=True)
    if any(panel.final for panel in data.panels):
        handles += [Patch(color=BAR, label="agents at the end"), Line2D([], [], **MEAN, label="mean at the end")]
    legend_below(figure, handles, "line: opinion assigned to the agent" if of_models is None else "line: model")
    return figure


def _panel_title(panel: Panel, scaled: float) -> str:
    """The panel's own title, broken to its width."""
    return heading([panel.title], scaled * (_LINES_WIDTH if panel.final else _PANEL_WIDTH))


def _across(panel: Panel) -> slice:
    """Columns of the figure's grid for the lines of a panel: two if it has no histogram."""
    return slice(2 * panel.column, 2 * panel.column + (1 if panel.final else 2))


def _is_lowest(panel: Panel, panels: Sequence[Panel]) -> bool:
    """Whether a panel is the lowest of its column."""
    return panel.row == max(other.row for other in panels if other.column == panel.column)


def _caption(ax: Axes, panel: Panel, data: PanelsData, scaled: float) -> None:
    """Write grid headings on the top row and left column, or the panel's own title, and the names of the axes."""
    above = data.column_titles[panel.column] if panel.row == 0 and data.column_titles else ""
    own = _panel_title(panel, scaled) or heading([above], _PANEL_WIDTH * scaled - 0.3)
    # On a narrow page a heading has no room beside the moments of the histogram, and stands above them.
    ax.set_title(own + "\n" * 2 * (is_narrow() and panel.final is not None), fontsize=pt(9), loc="left")
    ax.tick_params(labelleft=panel.column == 0)
    if panel.column == 0:
        level = data.row_titles[panel.row] if panel.row < len(data.row_titles) else ""
        ax.set_ylabel(heading([level, "opinion"], _PANEL_HEIGHT * scaled**0.5), fontsize=pt(9))
    if not _is_lowest(panel, data.panels):
        ax.set_xlabel("")
