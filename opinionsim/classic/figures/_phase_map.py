"""The mean or the spread of a measure over two swept parameters, as a map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, ListedColormap, LogNorm
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import AbstractPathEffect, withStroke

from opinionsim.classic.figures._levels import Levels, number_text, set_levels, tick_log
from opinionsim.classic.figures._phase_data import PhaseData, PhasePanel
from opinionsim.drawing import SHARES, colour_bar, heading, opinion_map, pt, signed, write_numbers
from opinionsim.errors import SpecError

#: Most places of a map with printed numbers, and inches of a character of them and of a line.
_MOST_PRINTED, _CHARACTER, _LINE = 64, 0.068, 0.16
#: Light to dark, none of them the white of the page.
_SHADES = LinearSegmentedColormap.from_list("shades", SHARES(np.linspace(0.1, 1, 256)))
#: Places without a value, which no colour of a map resembles.
_MISSING: Mapping[str, Any] = {"facecolor": "#DDDDDD", "edgecolor": "#B5B5B5", "hatch": "////"}
_HALO: list[AbstractPathEffect] = [withStroke(linewidth=3, foreground="white", alpha=0.8)]
_DOT: Mapping[str, Any] = {"marker": "o", "color": "white", "markeredgecolor": "black", "markeredgewidth": 0.7}


def table_of(panel: PhasePanel, column: str, y: Levels) -> np.ndarray:
    """Arrange a column of a measure's data as a table, shape (levels of `y`, levels of `x`), NaN without a run."""
    rows, x = panel.rows, panel.x
    table = np.full((len(y.levels), len(x.levels)), np.nan)
    table[y.index(rows[y.column]), x.index(rows[x.column])] = rows[column]
    return table


def draw_phase_map(panel: PhasePanel, y: Levels, contours: Sequence[float]) -> list[Artist]:
    """Draw a measure over two parameters into a panel, and return the entries of its legend.

    Each place reaches halfway to the next level. Colours span the values that are shown. Contours are those of the
    mean. Dots mark places with runs that had not stopped, for ``time`` and measures of clusters.
    """
    x, ax, size = panel.x, panel.ax, panel.size
    table = table_of(panel, panel.quantity, y)
    colours = _colours(table, panel.measure, log=panel.log and panel.quantity == "mean")
    mesh = ax.pcolormesh(x.edges, y.edges, np.ma.masked_invalid(table), **colours, edgecolors="face", linewidth=0.1)
    set_levels(ax.xaxis, x, (x.edges[0], x.edges[-1]), size[0])
    set_levels(ax.yaxis, y, (y.edges[0], y.edges[-1]), size[1])
    ax.tick_params(labelsize=pt(8.5), length=2, color="#888888")
    ax.spines[:].set_visible(False)
    handles: list[Artist] = []
    if np.isnan(table).any():
        ax.patch.set(**_MISSING)
        handles.append(Patch(**_MISSING, label="no value"))
    censored = np.nan_to_num(table_of(panel, "n_censored", y)) > 0
    if panel.marked and censored.any():
        rows, columns = np.nonzero(censored)
        ax.plot(x.places[columns], y.places[rows], linestyle="none", markersize=3, **_DOT)
        handles.append(Line2D([], [], linestyle="none", markersize=4, **_DOT, label="some runs had not stopped"))
    elif not (contours or panel.theory):
        _print(table, mesh, x, y, size)
    _draw_contours(table_of(panel, "mean", y), contours, x, y, ax)
    handles += panel.draw_theory({"linewidth": 1.5, "path_effects": _HALO})
    _add_bar(mesh, table, heading([panel.label], size[1]), ax)
    return handles


def _colours(table: np.ndarray, measure: str, *, log: bool) -> dict[str, Any]:
    """Red to blue about 0 for values of both signs, else light to dark; one colour for one value."""
    known = table[~np.isnan(table)]
    low, high = float(known.min()), float(known.max())
    if log and low <= 0:
        raise SpecError(f"{measure} cannot have logarithmic colours, which take numbers above 0; its least is {low:g}")
    most = max(abs(low), abs(high))
    # Differences that are rounding errors get no colours of their own.
    if high - low <= 1e-9 * most:
        return {"cmap": ListedColormap(["#CFE1EA"]), "vmin": low - (most or 1), "vmax": high + (most or 1)}
    if log:
        return {"cmap": _SHADES, "norm": LogNorm(low, high)}
    if low < 0 < high:
        return {"cmap": opinion_map(), "vmin": -most, "vmax": most}
    return {"cmap": _SHADES, "vmin": low, "vmax": high}


def _add_bar(mesh: Any, table: np.ndarray, label: str, ax: Axes) -> None:
    """Add a colour bar in plain numbers; that of one value has one number."""
    known = table[~np.isnan(table)]
    bar = colour_bar(mesh, ax, label, pad=0.02, aspect=26)
    if isinstance(mesh.norm, LogNorm):
        tick_log(bar.ax.yaxis, (mesh.norm.vmin or 1, mesh.norm.vmax or 1))
    elif known.max() - known.min() <= 1e-9 * np.abs(known).max():
        bar.set_ticks([float(known[0])], labels=[number_text(float(known[0]))])


def _draw_contours(table: np.ndarray, levels: Sequence[float], x: Levels, y: Levels, ax: Axes) -> None:
    """Draw lines of equal mean, with their numbers, at those of the levels that the means lie about."""
    known = table[~np.isnan(table)]
    within = sorted({float(level) for level in levels if known.min() < level < known.max()})
    if not within:
        return
    drawn = ax.contour(x.places, y.places, np.ma.masked_invalid(table), within, colors="black", linewidths=1.1)
    drawn.set_path_effects(_HALO)
    lines = [map(np.asarray, path.to_polygons(closed_only=False)) for path in drawn.get_paths()]
    spots = [_middle(max(each, key=len)) for each in lines]
    for text in ax.clabel(drawn, manual=spots, fmt=number_text, fontsize=pt(7.5), inline_spacing=2):
        text.set_path_effects(_HALO)


def _middle(line: np.ndarray) -> np.ndarray:
    """The point of a line (K, 2) that is nearest to the middle between its ends."""
    along = np.linspace(0, len(line) - 1, 8 * len(line) + 1)
    fine = np.transpose([np.interp(along, np.arange(len(line)), column) for column in line.T])
    return np.asarray(fine[np.abs(fine - line[[0, -1]].mean(axis=0)).sum(axis=1).argmin()])


def check_contours(data: PhaseData, contours: Sequence[float], x: Levels, y: Levels) -> list[float]:
    """The levels of contours.

    Raises
    ------
    SpecError
        If they are not finite numbers, there is no grid of numbers to draw them on, or no measure crosses a level.
    """
    wrong = [each for each in contours if isinstance(each, bool) or not isinstance(each, int | float | np.number)]
    levels = [] if wrong else [float(each) for each in contours]
    if wrong or not np.isfinite(levels).all():
        raise SpecError(f"contours must be finite numbers; got {list(contours)!r}")
    if levels and (min(len(x.levels), len(y.levels)) < 2 or not (x.numeric and y.numeric)):
        raise SpecError("contours need at least two levels of each parameter, all of them numbers")
    means = {name: data.of(name)["mean"] for name in data.labels}
    for level in levels:
        if not any(mean.min() < level < mean.max() for mean in means.values()):
            spans = ", ".join(f"{name} from {mean.min():.4g} to {mean.max():.4g}" for name, mean in means.items())
            raise SpecError(f"no mean crosses the contour {level:g}; means: {spans}")
    return levels


def _print(table: np.ndarray, mesh: Any, x: Levels, y: Levels, size: tuple[float, float]) -> None:
    """Print numbers into the places that have one, light on dark, if all have room for it."""
    decimals = _decimals(table)
    room = [_room(each) * inches for each, inches in zip((x, y), size, strict=True)]
    longest = max(len(signed(value, decimals)) for value in table[~np.isnan(table)])
    if table.size > _MOST_PRINTED or room[0] < longest * _CHARACTER + 0.06 or room[1] < _LINE:
        return
    write_numbers(mesh, table, lambda value: signed(value, decimals), (x.places, y.places))


def _room(levels: Levels) -> float:
    """The least room about a level that does not leave its place, as a part of the axis."""
    at, ends = (np.log(each) if levels.log else each for each in (levels.places, levels.edges))
    return float(2 * min((at - ends[:-1]).min(), (ends[1:] - at).min()) / (ends[-1] - ends[0]))


def _decimals(table: np.ndarray) -> int:
    """Decimals of printed numbers: none for whole ones, else about three digits."""
    known = table[~np.isnan(table)]
    most = float(np.abs(known).max())
    if most >= 10 and (known == known.round()).all():
        return 0
    return 0 if most >= 1000 else 1 if most >= 100 else 2 if most >= 0.1 else 4
