"""Colours and small helpers every figure shares."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from textwrap import fill
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colorbar import Colorbar
from matplotlib.colors import LinearSegmentedColormap, to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from opinionsim.errors import SpecError
from opinionsim.opinions import OpinionScale

#: Colours of the five published opinions, most negative first (Chuang et al. 2023, figures 4-6; A15).
_ANCHORS = ("#E60000", "#FF8080", "#999999", "#66C2FF", "#0066FF")
#: Colours of models: distinct under the common colour deficiencies, and none of them that of an opinion
#: (after Okabe and Ito, Color Universal Design, 2008).
_MODELS = ("#009E73", "#E69F00", "#CC79A7", "#000000", "#D55E00", "#56B4E9")
#: Characters a line of the name of a model may have in a legend.
_NAME_WIDTH = 28
#: Colour of agents that were assigned no opinion.
UNASSIGNED = "#222222"
#: Colour of marks that stand for no opinion in particular.
INK = "#5B6770"
#: Styles of lines, which distinguish them without colours.
LINES = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5)), (0, (3, 1, 1, 1, 1, 1)), (0, (9, 2)))
#: Shares from 0 to 1, light to dark, so that they print in grey; the same order under colour deficiencies.
SHARES = LinearSegmentedColormap.from_list("shares", ("#FFFFFF", "#CFE1EA", "#7FB0C8", "#34789B", "#123C57", "#081C2B"))
#: Inches of a character of a title, and of a line of it.
_CHARACTER, _LINE = 0.076, 0.165
#: Inches of a page below which legends do not fit beside axes; and the share of its width that a panel keeps there.
_COLUMN, _NARROWEST = 5.0, 0.45
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


def opinion_map() -> LinearSegmentedColormap:
    """The same colours for opinions anywhere in a range: grey in its middle."""
    return LinearSegmentedColormap.from_list("opinions", _ANCHORS)


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


def legend_handles(scale: OpinionScale, assigned: Iterable[float], *, words: bool) -> list[Artist]:
    """Legend entries for the assigned opinions that occur, highest first, and for the marks."""
    held = np.fromiter(assigned, dtype=float)
    colours, names = opinion_colours(scale), opinion_ticks(scale, words=False)
    handles: list[Artist] = []
    for point, name, label in reversed(list(zip(scale.points, names, scale.labels, strict=True))):
        if (held == point).any():
            text = f"{name} {label}" if words and label != name else name
            handles.append(Line2D([], [], color=colours[point], linewidth=2.2, label=text))
    if np.isnan(held).any():
        handles.append(Line2D([], [], color=UNASSIGNED, linewidth=2.2, label="none assigned"))
    return [*handles, *_mark_handles(held)]


def model_handles(colours: Mapping[str, str], assigned: Iterable[float]) -> list[Artist]:
    """Legend entries for models, and for the marks."""
    lines = [
        Line2D([], [], color=colour, linewidth=2.2, label=fill(name, _NAME_WIDTH)) for name, colour in colours.items()
    ]
    return [*lines, *_mark_handles(np.fromiter(assigned, dtype=float))]


def _mark_handles(held: np.ndarray) -> list[Line2D]:
    """Legend entries for the marks of measured opinions, and of assigned ones if there are any."""
    handles = [Line2D([], [], color=INK, marker="o", markersize=3.5, linestyle="none", label="measured")]
    if not np.isnan(held).all():
        ring = Line2D([], [], color=INK, linestyle=":", linewidth=1.2, label="assigned only")
        ring.set(marker="o", markersize=5.5, markerfacecolor="white")
        handles.append(ring)
    return handles


#: Inches of the width of new figures; None for a width of their own.
_WIDTH: ContextVar[float | None] = ContextVar("width", default=None)


@contextmanager
def paper(width: float | None = None, font_size: float | None = None) -> Iterator[None]:
    """Draw figures for a page: within this context, new figures have a width, and all texts a size.

    Parameters
    ----------
    width : float, optional
        Millimetres of new figures, 80 to 400: 84 is a column of a journal, 174 a page. Leave it out for axes of your
        own. Default the figure's own.
    font_size : float, optional
        Points of titles and names of axes, 4 to 24; numbers at ticks and legends are a little smaller. Default 0.9 of
        matplotlib's ``font.size``, which is 9.

    Raises
    ------
    SpecError
        If a number is out of range.
    """
    for name, value, low, high in (("width", width, 80, 400), ("font_size", font_size, 4, 24)):
        if value is not None and not low <= value <= high:
            raise SpecError(f"{name} must be from {low} to {high}; got {value!r}")
    token = _WIDTH.set(_WIDTH.get() if width is None else width / 25.4)
    try:
        with mpl.rc_context({} if font_size is None else {"font.size": font_size / 0.9}):
            yield
    finally:
        _WIDTH.reset(token)


def pt(size: float) -> float:
    """Points of a text of a size, where titles have 9."""
    return float(size * mpl.rcParams["font.size"] / 10)


def page(width: float) -> float:
    """Inches of the width of a new figure, `width` unless :func:`paper` says otherwise."""
    return _WIDTH.get() or width


def new_axes(width: float, height: float) -> Axes:
    """Axes on a new figure of a size in inches, without pyplot's global state; a narrower one is less high."""
    inches = page(width)
    return Figure(figsize=(inches, height * (inches / width) ** 0.5), layout="constrained").add_subplot()


def tidy(ax: Axes) -> None:
    """Remove the frame lines that carry no axis."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=pt(8.5), length=3, color="#888888")
    ax.set_axisbelow(True)


def time_axis(ax: Axes) -> None:
    """Name the horizontal axis, tick it at whole steps, and draw thin lines at the ticks of the other axis."""
    ax.set_xlabel("step", fontsize=pt(9))
    ax.xaxis.set_major_locator(MaxNLocator(nbins=6 if page(9.0) > 8 else "auto", integer=True))
    ax.grid(axis="y", color="#E4E4E4", linewidth=0.8)
    tidy(ax)


def name_outer(ax: Axes, others: Sequence[Axes], x: str, y: str) -> None:
    """Name the axes of a panel where no other panel stands further left, or right below."""
    right, covered = unused(ax, others)
    ax.set_xlabel("" if covered else x, fontsize=pt(9))
    ax.set_ylabel("" if right else y, fontsize=pt(9))


def colour_bar(mappable: Any, axes: Axes | Sequence[Axes], label: str, **layout: Any) -> Colorbar:
    """A colour bar beside axes, with a label."""
    figure: Any = (axes if isinstance(axes, Axes) else axes[0]).get_figure(root=False)
    bar: Colorbar = figure.colorbar(mappable, ax=axes, **layout)
    bar.set_label(label, fontsize=pt(9))
    bar.ax.tick_params(labelsize=pt(8.5))
    return bar


def legend_beside(ax: Axes, title: str, **options: Any) -> None:
    """Put the legend to the right of the axes; below them on a narrow figure, or if it is higher than the figure."""
    figure: Any = ax.get_figure(root=True)
    handles = options.get("handles", ax.get_legend_handles_labels()[0])
    lines = sum(str(handle.get_label()).count("\n") + 1 for handle in handles)
    if page(_COLUMN) < _COLUMN or lines * _LINE * pt(1) > figure.get_figheight():
        legend_below(figure, handles, title.replace("\n", " "))
        return
    look = {"fontsize": pt(8.5), "title_fontsize": pt(8.5), "frameon": False}
    ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), title=title, **look, **options)


def legend_below(figure: Any, handles: Sequence[Artist], title: str | None = None) -> None:
    """Put a legend below all axes, in as many columns as fit, and make the figure higher by its height."""
    inches = figure.get_figwidth()
    for handle in handles:
        handle.set_label(heading([str(handle.get_label())], inches - 0.6))
    texts = [str(handle.get_label()).split("\n") for handle in handles]
    widest = max(len(line) for text in texts for line in text) * _CHARACTER * pt(0.85) + 0.45
    columns = min(max(int(inches // widest), 1), len(handles))
    entries = -(-len(handles) // columns) * max(map(len, texts)) + bool(title)
    figure.set_figheight(figure.get_figheight() + _LINE * pt(1) * entries + 0.1)
    figure.legend(
        handles=list(handles), loc="outside lower left", ncols=columns, fontsize=pt(8), frameon=False,
        title=title, title_fontsize=pt(8), alignment="left",
    )  # fmt: skip


def heading(lines: Iterable[str], width: float) -> str:
    """The lines that are not empty, each broken to a width in inches."""
    every = "\n".join(lines).split("\n")
    most = max(int(width / (_CHARACTER * pt(1))), 12)
    return "\n".join(fill(line, most, break_on_hyphens=False) for line in every if line)


def set_heading(ax: Axes, lines: Iterable[str]) -> None:
    """Set the title of axes, broken to their width."""
    figure: Any = ax.get_figure(root=True)
    if figure.get_layout_engine() is not None:
        figure.get_layout_engine().execute(figure)  # the width that ticks and legend leave
    title = heading(lines, figure.get_figwidth() * ax.get_position().width)
    ax.set_title(title, fontsize=pt(9), loc="left")
    if _WIDTH.get() is not None:
        figure.set_figheight(figure.get_figheight() + _LINE * pt(1) * title.count("\n"))


def new_panels(
    names: Sequence[str], lines: Sequence[str], size: tuple[float, float], n_columns: int | None = None
) -> tuple[Figure, list[Axes]]:
    """A figure with a panel for each name, in rows, under a common title; places left over stay empty.

    Parameters
    ----------
    names : sequence of str
        Titles of the panels.
    lines : sequence of str
        Lines of the common title.
    size : (float, float)
        Inches of a panel.
    n_columns : int, optional
        Default one row for up to three panels, else the number that comes closest to a square.
    """
    if n_columns is None:
        n_columns = len(names) if len(names) <= 3 else int(np.ceil(np.sqrt(len(names))))
    width = page(max(size[0] * n_columns + 0.8, 6.4))
    n_rows = -(-len(names) // max(min(n_columns, int((width - 0.5) / (_NARROWEST * size[0]))), 1))
    n_columns = -(-len(names) // n_rows) if n_rows > -(-len(names) // n_columns) else n_columns
    shrunk = min((width - 0.8) / n_columns / size[0], 1)
    size = (size[0] * shrunk, size[1] * shrunk**0.7)
    title = heading(lines, width - 0.3)
    captions = [heading([name], size[0] - 0.3) for name in names]
    deepest = [max(text.count("\n") for text in captions[row * n_columns :][:n_columns]) for row in range(n_rows)]
    height = size[1] * n_rows + _LINE * pt(1) * (title.count("\n") + 1 + sum(deepest)) + 0.3
    figure = Figure(figsize=(width, height), layout="constrained")
    grid = figure.add_gridspec(n_rows, n_columns)
    panels: list[Axes] = []
    for place, caption in enumerate(captions):
        ax = figure.add_subplot(grid[divmod(place, n_columns)])
        ax.set_title(caption if len(names) > 1 else "", fontsize=pt(9), loc="left")
        panels.append(ax)
    figure.suptitle(title, fontsize=pt(9.5), x=0.01, ha="left")
    return figure, panels


def unused(ax: Axes, others: Sequence[Axes]) -> tuple[bool, bool]:
    """Whether axes need no name at the left, and none below, since another panel is further left, or below."""
    spec, places = ax.get_subplotspec(), [other.get_subplotspec() for other in others]
    if spec is None:
        return False, False
    below = any(
        other is not None and other.colspan.start == spec.colspan.start and other.rowspan.start > spec.rowspan.start
        for other in places
    )
    return spec.colspan.start > 0, below
