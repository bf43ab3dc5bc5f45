"""Colours and small helpers every figure shares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from textwrap import fill

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from opinionsim.opinions import OpinionScale

__all__ = [
    "BAR",
    "INK",
    "UNASSIGNED",
    "legend_handles",
    "model_colours",
    "model_handles",
    "new_axes",
    "opinion_colours",
    "opinion_ticks",
    "point_name",
    "signed",
    "tidy",
]

#: Colours of the five published opinions, most negative first (Chuang et al. 2023, figures 4-6; A15).
_ANCHORS = ("#E60000", "#FF8080", "#999999", "#66C2FF", "#0066FF")
#: Colours of models: told apart under the common colour deficiencies, and none of them that of an opinion
#: (after Okabe and Ito, Color Universal Design, 2008).
_MODELS = ("#009E73", "#E69F00", "#CC79A7", "#000000", "#D55E00", "#56B4E9")
#: Characters a line of the name of a model may have in a legend.
_NAME_WIDTH = 28
#: Agents that were assigned no opinion.
UNASSIGNED = "#222222"
#: Marks that stand for no opinion in particular.
INK = "#5B6770"
#: Bars, light enough for a dotted line to show on them.
BAR = "#AAB6BE"


def opinion_colours(scale: OpinionScale) -> dict[int, str]:
    """Colour of each scale point: red below neutral, grey at neutral, blue above.

    Parameters
    ----------
    scale : OpinionScale
        k points; on scales other than -2..2 the published colours are interpolated.

    Returns
    -------
    dict of int to str
        ``#rrggbb`` for each point.

    Notes
    -----
    Chuang et al. 2023, figures 4-6 (A15). Red, grey and blue stay apart under the common colour deficiencies.
    """
    anchors = np.array([to_rgb(colour) for colour in _ANCHORS])
    half = (scale.highest - scale.lowest) / 2
    place = (scale.values - scale.neutral) / half
    channels = [np.interp(place, np.linspace(-1, 1, len(_ANCHORS)), anchors[:, channel]) for channel in range(3)]
    return {
        point: to_hex(rgb).upper() for point, rgb in zip(scale.points, np.transpose(channels).tolist(), strict=True)
    }


def model_colours(models: Iterable[str]) -> dict[str, str]:
    """Colour of each model, by the order of their names.

    Parameters
    ----------
    models : iterable of str
        Names; repetitions are allowed.

    Returns
    -------
    dict of str to str
        ``#rrggbb`` for each name.
    """
    names = sorted(set(models))
    if len(names) <= len(_MODELS):
        return dict(zip(names, _MODELS, strict=False))
    spread = mpl.colormaps["turbo"](np.linspace(0.05, 0.95, len(names)))
    return {name: to_hex(rgb).upper() for name, rgb in zip(names, spread, strict=True)}


def signed(value: float, decimals: int = 2) -> str:
    """A number as printed in a figure, with a proper minus sign."""
    # Adding 0.0 turns a rounded -0.0 into 0.0.
    return f"{round(value, decimals) + 0.0:.{decimals}f}".replace("-", "\N{MINUS SIGN}")


def point_name(point: int) -> str:
    """A scale point with its sign."""
    return f"{point:+d}".replace("-", "\N{MINUS SIGN}") if point else "0"


def opinion_ticks(scale: OpinionScale, *, words: bool) -> list[str]:
    """Tick labels of the scale points, with their verbal anchors or without."""
    named = zip(scale.labels, scale.points, strict=True)
    return [f"{label}  {point_name(point)}" if words else point_name(point) for label, point in named]


def legend_handles(scale: OpinionScale, assigned: Iterable[float], *, words: bool) -> list[Line2D]:
    """Legend entries for the assigned opinions that occur, highest first, and for the marks."""
    held = np.fromiter(assigned, dtype=float)
    colours, names = opinion_colours(scale), opinion_ticks(scale, words=False)
    handles = []
    for point, name, label in reversed(list(zip(scale.points, names, scale.labels, strict=True))):
        if (held == point).any():
            text = f"{name} {label}" if words and label != name else name
            handles.append(Line2D([], [], color=colours[point], linewidth=2.2, label=text))
    if np.isnan(held).any():
        handles.append(Line2D([], [], color=UNASSIGNED, linewidth=2.2, label="none assigned"))
    return [*handles, *_mark_handles(held)]


def model_handles(colours: Mapping[str, str], assigned: Iterable[float]) -> list[Line2D]:
    """Legend entries for models, and for the marks."""
    lines = [
        Line2D([], [], color=colour, linewidth=2.2, label=fill(name, _NAME_WIDTH)) for name, colour in colours.items()
    ]
    return [*lines, *_mark_handles(np.fromiter(assigned, dtype=float))]


def _mark_handles(held: np.ndarray) -> list[Line2D]:
    """Legend entries for the marks: what was measured, and what was assigned if anything was."""
    handles = [Line2D([], [], color=INK, marker="o", markersize=3.5, linestyle="none", label="measured")]
    if not np.isnan(held).all():
        ring = Line2D([], [], color=INK, linestyle=":", linewidth=1.2, label="assigned only")
        ring.set(marker="o", markersize=5.5, markerfacecolor="white")
        handles.append(ring)
    return handles


def new_axes(width: float, height: float) -> Axes:
    """Axes on a figure of their own, in inches, known to no global state."""
    return Figure(figsize=(width, height), layout="constrained").add_subplot()


def tidy(ax: Axes) -> None:
    """Take away the frame lines that carry nothing."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=8.5, length=3, color="#888888")
    ax.set_axisbelow(True)
