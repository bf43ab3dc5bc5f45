"""A measure over one swept parameter, a line and a band for each level of a second."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm, Normalize, to_hex
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from opinionsim.classic.figures._levels import Levels, parameter_name, set_levels, tick_log
from opinionsim.classic.figures._phase_data import PhasePanel
from opinionsim.drawing import INK, LINES, colour_bar, heading, model_colours, pt, tidy
from opinionsim.errors import SpecError

#: Most lines told apart by colour, style and mark; more have the colours of a scale, and no bands.
MOST_LINES = 10
_MARKS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
#: Part of the span of the numbers by which theory may widen the axis.
_BEYOND = 0.5


def line_colours(lines: Levels | None) -> list[str]:
    """Colour of each line: by size for numbers, distinct for others.

    Raises
    ------
    SpecError
        If there are too many levels that are not numbers.
    """
    if lines is None:
        return [INK]
    n = len(lines.levels)
    if not lines.numeric:
        if n > MOST_LINES:
            raise SpecError(
                f"{lines.column} has {n} levels that are not numbers; at most {MOST_LINES} lines can be told apart: "
                f"draw a map with y={lines.column!r}, or a frame with fewer levels"
            )
        return list(model_colours(lines.texts).values()) if n < 7 else _spread(np.linspace(0, 1, n))
    if n <= MOST_LINES:
        return _spread(np.linspace(1, 0, n) if n > 1 else np.array([0.6]))
    return _spread(_norm(lines)(lines.places))


def _spread(shares: Any) -> list[str]:
    """Colours of viridis but for its palest."""
    return [to_hex(colour) for colour in mpl.colormaps["viridis"](0.8 * (1 - np.asarray(shares)))]


def _norm(lines: Levels) -> Normalize:
    return (LogNorm if lines.log else Normalize)(lines.places.min(), lines.places.max())


def draw_phase_lines(panel: PhasePanel, lines: Levels | None) -> list[Line2D]:
    """Draw a measure over one parameter into a panel, and return the entries of its legend.

    Levels are placed at their values; levels that are not numbers are placed side by side and not joined. Hollow marks
    are points with runs that had not stopped, for ``time`` and measures of clusters.
    """
    colours, rows, x = line_colours(lines), panel.rows, panel.x
    if panel.log and (rows["mean"] <= 0).any():
        raise SpecError(
            f"{panel.measure} cannot have a logarithmic axis, which takes numbers above 0; its least mean is "
            f"{rows['mean'].min():g}"
        )
    handles: list[Line2D] = []
    many = len(colours) > MOST_LINES
    for at, colour in enumerate(colours):
        part = rows if lines is None else rows[rows[lines.column] == lines.levels[at]]
        look: dict[str, Any] = {
            "color": colour,
            "marker": _MARKS[at % len(_MARKS)],
            "linestyle": LINES[at % len(LINES)],
        }
        if many or (lines is None and x.numeric):
            look |= {"marker": "o", "linestyle": "-"}
        # Where lines are points, they stand side by side within the place of their level.
        beside = (at - (len(colours) - 1) / 2) * 0.7 / len(colours) * np.diff(x.edges)[0]
        points = not x.numeric or len(x.levels) == 1
        shift = beside if points else 0.0
        if panel.quantity == "mean" and not many and len(panel.runs):
            own = panel.runs if lines is None else panel.runs[panel.runs[lines.column] == lines.levels[at]]
            places = x.places[x.index(own[x.column])] + shift
            panel.ax.scatter(places, own["value"], 6, colour, alpha=0.4, linewidths=0, zorder=1.5)
        _draw_line(panel, part, shift, look, band=not many)
        if lines is not None and not many:
            shown = look if x.numeric else {**look, "linestyle": "none"}
            handles.append(Line2D([], [], **shown, markersize=4, label=lines.texts[at]))
    if panel.marked and rows["n_censored"].any():
        hollow = Line2D([], [], color=INK, linestyle="none", label="some runs had not stopped")
        hollow.set(marker="o", markersize=4.5, markerfacecolor="white")
        handles.append(hollow)
    _set_axes(panel)
    handles += panel.draw_theory({"linewidth": 1.4, "zorder": 4})
    if lines is not None and many:
        levels = ScalarMappable(_norm(lines), mpl.colors.ListedColormap(_spread(np.linspace(0, 1, 256))))
        bar = colour_bar(levels, panel.ax, parameter_name(lines.column), pad=0.02, aspect=26)
        if lines.log:
            tick_log(bar.ax.yaxis, (lines.places.min(), lines.places.max()))
    return handles


def _draw_line(panel: PhasePanel, part: pd.DataFrame, beside: float, look: Mapping[str, Any], *, band: bool) -> None:
    """Draw one line, with its band if it is one of means, and hollow marks where some runs had not stopped."""
    x, ax = panel.x, panel.ax
    at = x.places[x.index(part[x.column])] + beside
    middle, low, high = (part[name].to_numpy(float) for name in (panel.quantity, "low", "high"))
    colour = look["color"]
    filled = panel.quantity == "mean" and band
    if filled and x.numeric and len(x.levels) > 1:
        ax.fill_between(at, low, high, color=colour, alpha=0.2, linewidth=0)
    elif filled:
        several = ~np.isnan(low)
        ax.vlines(at[several], low[several], high[several], color=colour, alpha=0.35, linewidth=5)
    joined = look["linestyle"] if x.numeric else "none"
    ax.plot(at, middle, **{**look, "linestyle": joined}, linewidth=1.6, markersize=3.5 if len(x.levels) <= 30 else 0)
    censored = (part["n_censored"] > 0).to_numpy() & panel.marked
    if censored.any():
        ax.plot(
            at[censored], middle[censored], linestyle="none", color=colour, marker=look["marker"], markersize=4.5,
            markerfacecolor="white", zorder=3,
        )  # fmt: skip


def _set_axes(panel: PhasePanel) -> None:
    """Scale, limit and name the axes: those of the numbers, widened a little for theory."""
    x, ax, log = panel.x, panel.ax, panel.log and panel.quantity == "mean"
    edges = x.edges
    if x.numeric and len(x.levels) > 1:
        low, high = (np.log(x.places[[0, -1]]) if x.log else x.places[[0, -1]]).tolist()
        ends = np.array([low - 0.03 * (high - low), high + 0.03 * (high - low)])
        edges = np.exp(ends) if x.log else ends
    set_levels(ax.xaxis, x, (edges[0], edges[-1]), panel.size[0])
    columns = ["mean", "low", "high"] if panel.quantity == "mean" else ["spread"]
    numbers = panel.rows[columns].to_numpy(float).ravel()
    if panel.quantity == "mean" and panel.data.y is None:
        numbers = np.concatenate([numbers, panel.runs["value"].to_numpy(float)])
    numbers = numbers[np.isfinite(numbers) & ((numbers > 0) | (not log))]
    change, back = (np.log, np.exp) if log else (np.asarray, np.asarray)
    low, high = float(change(numbers.min())), float(change(numbers.max()))
    room = high - low or abs(low) or 1.0
    for at, values in panel.theory.values():
        seen = values[(at >= edges[0]) & (at <= edges[-1]) & np.isfinite(values) & ((values > 0) | (not log))]
        if len(seen):
            low = max(min(low, float(change(seen.min()))), low - _BEYOND * room)
            high = min(max(high, float(change(seen.max()))), high + _BEYOND * room)
    ends = np.array([low, high]) + np.array([-0.06, 0.06]) * (high - low or room)
    # No axis goes below 0 for numbers that never do.
    ends[0] = max(ends[0], 0) if not log and low >= 0 and panel.quantity == "spread" else ends[0]
    ends = back(ends)
    ax.set_yscale("log" if log else "linear")
    ax.set_ylim(float(ends[0]), float(ends[1]))
    if log:
        tick_log(ax.yaxis, (float(ends[0]), float(ends[1])))
    else:
        ax.yaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10]))
    ax.set_ylabel(heading([panel.label], panel.size[1]), fontsize=pt(9))
    ax.grid(axis="y", color="#E4E4E4", linewidth=0.8)
    tidy(ax)
