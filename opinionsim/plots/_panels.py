"""A grid of conditions: trajectories beside final distributions, with controls below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from opinionsim.errors import SpecError
from opinionsim.metrics import NOT_SET, condition_axes, evidence_statement, order_levels, scale_of
from opinionsim.plots._final import FinalData, draw_final, from_trajectories
from opinionsim.plots._inputs import Frames, HasFrames, describe
from opinionsim.plots._style import legend_handles
from opinionsim.plots._trajectories import TrajectoryData, draw_trajectories, trajectory_data

__all__ = ["Panel", "PanelsData", "panels", "panels_data"]

#: Interactions in which nobody reads anybody (Chuang et al. 2023, controls; A12), as panel titles.
_CONTROLS: Mapping[str, str] = {
    "independent": "role play, no interaction (independent reports)",
    "remembered": "role play, no interaction (remembered reports)",
    "no-role-play": "no role play, no interaction",
}


@dataclass(frozen=True, eq=False)
class Panel:
    """One condition of the grid.

    Attributes
    ----------
    row, column : int
        Place in the grid, from 0 at the top left.
    title : str
        What sets this panel apart, empty where row and column headings say it.
    run_id : str
        The run that is drawn.
    trajectory : TrajectoryData
        Its lines.
    final : FinalData or None
        Its histogram; None for controls, which are line panels.
    """

    row: int
    column: int
    title: str
    run_id: str
    trajectory: TrajectoryData
    final: FinalData | None


@dataclass(frozen=True, eq=False)
class PanelsData:
    """What a grid of panels shows.

    Attributes
    ----------
    panels : tuple of Panel
        One run a panel; places without a complete run are left out.
    n_rows, n_columns : int
        Size of the grid with the rows of controls.
    row_titles, column_titles : tuple of str
        Headings of the grid of conditions; empty where each panel has a title of its own.
    title : str
        What all conditions share.
    note : str
        Which run each panel shows, the instrument, and conditions held at one value.
    evidence : str
        What kind of evidence the runs are, in words.
    """

    panels: tuple[Panel, ...]
    n_rows: int
    n_columns: int
    row_titles: tuple[str, ...]
    column_titles: tuple[str, ...]
    title: str
    note: str
    evidence: str


@dataclass(frozen=True)
class _Layout:
    """Which condition varies down, which across, and which are held at their first level."""

    rows: str | None
    columns: str | None
    held: Mapping[str, tuple[Any, int]]


class _Place(NamedTuple):
    """A run and where its panel goes."""

    row: int
    column: int
    title: str
    run: pd.Series


@dataclass(frozen=True)
class _Grid:
    """Places of the conditions, without controls."""

    places: list[_Place]
    n_rows: int
    n_columns: int
    row_titles: tuple[str, ...] = ()
    column_titles: tuple[str, ...] = ()


def panels_data(
    results: HasFrames,
    rows: str | None = None,
    columns: str | None = None,
    where: Mapping[str, Any] | None = None,
    replicate: int = 0,
    kind: str | None = None,
    ddof: int = 0,
) -> PanelsData:
    """The numbers of a grid of panels.

    Parameters
    ----------
    results : Results or Frames
        Frames of a store; only complete runs are drawn.
    rows, columns : str, optional
        Columns of ``results.runs`` that vary down and across. Default: confirmation bias down and framing
        across where they vary, else the first conditions that do. A single varying condition is wrapped.
    where : mapping, optional
        Column of ``results.runs`` to the value to draw, as in ``{"topic": "global-warming"}``.
    replicate : int
        Which replicate to draw.
    kind : str, optional
        Kind of text the opinions were coded from; default the first present of report, response, post, probe.
    ddof : int
        Correction of the standard deviation.

    Returns
    -------
    PanelsData
        Conditions that vary beyond rows and columns are held at their first level, which the note states.

    Raises
    ------
    SpecError
        If a column does not exist, no complete run is left to draw, or one has no such texts.
    """
    for axis in (rows, columns, *(where or {})):
        if axis is not None and axis not in results.runs.columns:
            valid = ", ".join(condition_axes(results.runs)) or "none, for no condition varies"
            raise SpecError(f"the runs have no column {axis!r}; conditions that vary: {valid}")
    runs = _all_named(_chosen(results.runs, where or {}, replicate))
    is_control = runs["interaction"].isin(list(_CONTROLS))
    main = runs[~is_control] if (~is_control).any() else runs
    layout = _layout(main, rows, columns)
    for axis, (level, _) in layout.held.items():
        main = main[main[axis] == level]
    grid = _grid(main, layout)
    controls = _control_places(runs[is_control & ~runs["run_id"].isin(main["run_id"])], main, layout, grid)
    drawn = [_panel(results, place, kind, ddof, histogram=True) for place in grid.places]
    drawn += [_panel(results, place, kind, ddof, histogram=False) for place in controls]
    differing = condition_axes(main)
    replicates = results.runs["replicate"].nunique()
    which = f"one run a panel, replicate {replicate} (of {replicates})" if replicates > 1 else "one run a panel"
    never = [_never(drawn)] if _never(drawn) else []
    held = [f"{_heading(axis)} held at {level} (first of {n})" for axis, (level, n) in layout.held.items()]
    return PanelsData(
        panels=tuple(drawn),
        n_rows=max(panel.row for panel in drawn) + 1,
        n_columns=grid.n_columns,
        row_titles=grid.row_titles,
        column_titles=grid.column_titles,
        title=describe(main.iloc[0], without=differing),
        note="; ".join([which, f"{drawn[0].trajectory.instrument}, ddof {ddof}", *held, *never]),
        evidence=evidence_statement(str(place.run["evidence"]) for place in [*grid.places, *controls]),
    )


def _never(drawn: Sequence[Panel]) -> str:
    """How many agents have no line, empty when all have."""
    silent = [np.isnan(panel.trajectory.values[:, -1]) for panel in drawn]
    n_never, n_agents = sum(int(mask.sum()) for mask in silent), sum(mask.size for mask in silent)
    return f"{n_never} of {n_agents} agents never measured" if n_never else ""


def _chosen(runs: pd.DataFrame, where: Mapping[str, Any], replicate: int) -> pd.DataFrame:
    """Complete runs of one replicate that have the values asked for."""
    chosen = runs[(runs["status"] == "complete") & (runs["replicate"] == replicate)]
    if chosen.empty:
        raise SpecError(f"no run of replicate {replicate} is complete, so there is nothing to draw")
    for column, value in where.items():
        levels = order_levels(chosen[column])
        chosen = chosen[chosen[column] == value]
        if chosen.empty:
            valid = ", ".join(map(str, levels))
            raise SpecError(f"no complete run of replicate {replicate} has {column} = {value!r}; valid: {valid}")
    return chosen


def _all_named(runs: pd.DataFrame) -> pd.DataFrame:
    """Conditions that vary with a level in every row, so that a run for which one is not set keeps its panel."""
    named = {axis: runs[axis].astype(object).where(runs[axis].notna(), NOT_SET) for axis in condition_axes(runs)}
    return runs.assign(**named)


def _layout(runs: pd.DataFrame, rows: str | None, columns: str | None) -> _Layout:
    """Fill in what the caller left open."""
    varying = [axis for axis in condition_axes(runs) if axis not in (rows, columns)]
    free = [axis for axis in varying if axis != "topic"]
    if not free and rows is None and columns is None:
        free = varying
    if columns is None and "framing" in free and (rows or len(free) > 1):
        columns = "framing"
    if rows is None and "confirmation_bias" in free and (columns or len(free) > 1):
        rows = "confirmation_bias"
    free = [axis for axis in free if axis not in (rows, columns)]
    if columns is None and free and (rows or len(free) > 1):
        columns = free.pop(0)
    if rows is None and free:
        rows = free.pop(0)
    held = [axis for axis in varying if axis not in (rows, columns)]
    levels = {axis: order_levels(runs[axis]) for axis in held}
    return _Layout(rows, columns, {axis: (found[0], len(found)) for axis, found in levels.items()})


def _grid(runs: pd.DataFrame, layout: _Layout) -> _Grid:
    """Put one run at each crossing of the levels."""
    if layout.rows is not None and layout.columns is None:
        return _wrapped(runs, layout.rows)
    down = order_levels(runs[layout.rows]) if layout.rows else [None]
    across = order_levels(runs[layout.columns]) if layout.columns else [None]
    places = []
    for row, low in enumerate(down):
        for column, wide in enumerate(across):
            at = runs if layout.rows is None else runs[runs[layout.rows] == low]
            at = at if layout.columns is None else at[at[layout.columns] == wide]
            if len(at):
                places.append(_Place(row, column, "", at.iloc[0]))
    row_titles = tuple(_level(layout.rows, level) for level in down) if layout.rows else ()
    column_titles = tuple(_level(layout.columns, level) for level in across) if layout.columns else ()
    return _Grid(places, len(down), len(across), row_titles, column_titles)


def _wrapped(runs: pd.DataFrame, axis: str) -> _Grid:
    """A single condition: two columns when that leaves no gap or there are many, else one below the other."""
    levels = order_levels(runs[axis])
    n_columns = 1 if len(levels) in (1, 3) else 2
    places = [
        _Place(*divmod(position, n_columns), _level(axis, level), runs[runs[axis] == level].iloc[0])
        for position, level in enumerate(levels)
    ]
    return _Grid(places, -(-len(levels) // n_columns), n_columns)


def _control_places(controls: pd.DataFrame, main: pd.DataFrame, layout: _Layout, grid: _Grid) -> list[_Place]:
    """Controls on the topics drawn above, below the conditions from left to right."""
    own = controls[controls["topic"].isin(main["topic"])]
    for axis, (level, _) in layout.held.items():
        # A control that does not know the condition, as one without memory, still belongs to the figure.
        if axis != "topic" and (own[axis] == level).any():
            own = own[own[axis] == level]
    order = {name: position for position, name in enumerate(_CONTROLS)}
    own = own.sort_values("interaction", key=lambda names: names.map(order), kind="stable")
    beyond = ("topic", "memory") if own["confirmation_bias"].nunique() > 1 else ("topic", "memory", "confirmation_bias")
    return [
        _Place(
            grid.n_rows + position // grid.n_columns,
            position % grid.n_columns,
            "\n".join(filter(None, [_CONTROLS[run["interaction"]], describe(run, without=beyond)])),
            run,
        )
        for position, (_, run) in enumerate(own.iterrows())
    ]


def _panel(results: HasFrames, place: _Place, kind: str | None, ddof: int, *, histogram: bool) -> Panel:
    """The numbers of one panel."""
    same = results.runs[(results.runs["run_id"] == place.run["run_id"]) & (results.runs["cell"] == place.run["cell"])]
    trajectory = trajectory_data(Frames(same, results.agents, results.opinions), 0, kind, scale_of(results.opinions))
    final = from_trajectories(trajectory, ddof) if histogram else None
    return Panel(place.row, place.column, place.title, str(place.run["run_id"]), trajectory, final)


def _heading(axis: str) -> str:
    """Name of a condition: the last part of its path, in words."""
    return axis.rsplit(".", 1)[-1].replace("_", " ")


def _level(axis: str | None, level: Any) -> str:
    """A level with the name of its condition."""
    return f"{level} framing" if axis == "framing" else f"{_heading(str(axis))}: {level}"


def panels(
    results: HasFrames,
    rows: str | None = None,
    columns: str | None = None,
    where: Mapping[str, Any] | None = None,
    replicate: int = 0,
    kind: str | None = None,
    ddof: int = 0,
) -> Figure:
    """Draw the conditions of an experiment side by side.

    Each condition has the trajectories of one run and beside them its final distribution on the same axis of
    opinions, with a dotted line at the bias. Controls without interaction follow below as line panels.

    Parameters
    ----------
    results, rows, columns, where, replicate, kind, ddof
        As for :func:`panels_data`.

    Returns
    -------
    Figure
        The title states evidence, what all panels share, which run each shows and the instrument.

    Raises
    ------
    SpecError
        As for :func:`panels_data`.

    Notes
    -----
    Layout of Chuang et al. 2023: figures 4 and 6 for framing by confirmation bias with controls, figure 5
    for a sweep of initial distributions (A15).
    """
    data = panels_data(results, rows, columns, where, replicate, kind, ddof)
    width, height = 0.6 + 5.2 * data.n_columns, 1.5 + 2.15 * data.n_rows
    figure = Figure(figsize=(max(width, 7.2), height), layout="constrained")
    spec = figure.add_gridspec(data.n_rows, 2 * data.n_columns, width_ratios=[4.2, 1] * data.n_columns)
    first = figure.add_subplot(spec[data.panels[0].row, _across(data.panels[0])])
    for panel in data.panels:
        ax = first if panel is data.panels[0] else figure.add_subplot(spec[panel.row, _across(panel)], sharey=first)
        draw_trajectories(panel.trajectory, ax, words=False)
        _caption(ax, panel, data)
        if panel.final is not None:
            bars = figure.add_subplot(spec[panel.row, 2 * panel.column + 1], sharey=first)
            draw_final(panel.final, bars, horizontal=True)
            bars.tick_params(labelleft=False)
            bars.set_title("\n".join(panel.final.moments), fontsize=8, loc="left")
            if _is_lowest(panel, [other for other in data.panels if other.final]):
                bars.set_xlabel("agents", fontsize=9)
    assigned = np.concatenate([panel.trajectory.assigned for panel in data.panels])
    handles = legend_handles(data.panels[0].trajectory.scale, assigned, words=True)
    figure.legend(handles=handles, loc="outside lower center", ncols=4, fontsize=8.5, frameon=False)
    figure.suptitle("\n".join(filter(None, [data.evidence, data.title, data.note])), fontsize=10)
    return figure


def _across(panel: Panel) -> slice:
    """Columns of the figure's grid the lines take: two where no histogram stands beside them."""
    return slice(2 * panel.column, 2 * panel.column + (1 if panel.final else 2))


def _is_lowest(panel: Panel, panels: Sequence[Panel]) -> bool:
    """Whether nothing stands below in the same column."""
    return panel.row == max(other.row for other in panels if other.column == panel.column)


def _caption(ax: Axes, panel: Panel, data: PanelsData) -> None:
    """Headings of the grid on its top row and left column, or the panel's own title, and names of the axes."""
    heading = data.column_titles[panel.column] if panel.row == 0 and data.column_titles else ""
    ax.set_title(panel.title or heading, fontsize=9.5, loc="left")
    ax.tick_params(labelleft=panel.column == 0)
    if panel.column == 0:
        level = f"{data.row_titles[panel.row]}\n" if panel.row < len(data.row_titles) else ""
        ax.set_ylabel(f"{level}opinion", fontsize=9)
    if _is_lowest(panel, data.panels):
        ax.set_xlabel("step", fontsize=9)
