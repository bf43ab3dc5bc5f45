"""Colours and small helpers that all figures share."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import cycle
from textwrap import fill, shorten
from typing import Any, Literal, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colorbar import Colorbar
from matplotlib.colors import LinearSegmentedColormap, to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from opinionsim.drawing._captions import WITHIN, keep_caption
from opinionsim.errors import SpecError
from opinionsim.opinions import OpinionScale
from opinionsim.store import Mark

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
#: Points of the smallest text.
_SMALLEST = 6.0
#: Inches of a page below which legends do not fit beside axes; and the share of its width that a panel keeps there.
_COLUMN, _NARROWEST = 5.0, 0.45
#: Most characters of the label of an event.
_LABEL = 36
#: Bars, light enough for a dotted line to show on them.
BAR = "#AAB6BE"


class Facets(NamedTuple):
    """Places of conditions in a full grid of panels."""

    rows: list[str]
    """Headings of the rows; a single empty one if nothing varies down."""
    columns: list[str]
    """Headings of the columns, likewise."""
    places: dict[str, tuple[int, int]]
    """Row and column of each condition."""
    within: dict[str, str]
    """What distinguishes a condition from others in its panel."""


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
    Chuang et al. 2023, figures 4-6 (A15). Red, grey and blue remain distinct under the common colour vision
    deficiencies.
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
        ``#rrggbb`` for each name. There are six colours: with more names they repeat, and lines differ in style
        (:func:`line_style`).
    """
    return dict(zip(sorted(set(models)), cycle(_MODELS), strict=False))


def line_style(place: int, *, plain: bool = False) -> Any:
    """Style of a line by its place in :func:`model_colours`: no two of the first 36 share both colour and style.

    Those of the first six are all different, or `plain`.
    """
    again = place // len(_MODELS)
    return LINES[(again if plain else place + again) % len(LINES)]


def signed(value: float, decimals: int = 2) -> str:
    """A number as printed in a figure, with a proper minus sign."""
    # Adding 0.0 turns a rounded -0.0 into 0.0.
    return f"{round(value, decimals) + 0.0:.{decimals}f}".replace("-", "\N{MINUS SIGN}")


def point_name(point: int) -> str:
    """A scale point with its sign."""
    return f"{point:+d}".replace("-", "\N{MINUS SIGN}") if point else "0"


def opinion_ticks(scale: OpinionScale, *, words: bool) -> list[str]:
    """Tick labels of the scale points, with or without their verbal anchors."""
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
        Line2D([], [], color=colours[name], linestyle=line_style(place, plain=True), linewidth=2.2,
               label=fill(name, _NAME_WIDTH))
        for place, name in enumerate(colours)
    ]  # fmt: skip
    return [*lines, *_mark_handles(np.fromiter(assigned, dtype=float))]


def _mark_handles(held: np.ndarray) -> list[Line2D]:
    """Legend entries for the marks of measured opinions, and of assigned ones if there are any."""
    handles = [Line2D([], [], color=INK, marker="o", markersize=3.5, linestyle="none", label="measured")]
    if not np.isnan(held).all():
        ring = Line2D([], [], color=INK, linestyle=":", linewidth=1.2, label="assigned only")
        ring.set(marker="o", markersize=5.5, markerfacecolor="white")
        handles.append(ring)
    return handles


def band_handles(band: str, **single: Any) -> list[Artist]:
    """Legend entries for bands and for single runs, as far as a text of :func:`metrics.say_band` names them."""
    found: list[Artist] = []
    for said in filter(None, band.split("; ")):
        if (name := said.removeprefix("band: ")) != said:
            found.append(Patch(color=INK, alpha=0.3, linewidth=0, label=fill(name, _NAME_WIDTH)))
        else:
            found.append(Line2D([], [], **{"color": INK, "linewidth": 0.6, "alpha": 0.6, **single}, label="single run"))
    return found


#: Inches of the width of new figures; None for a width of their own.
_WIDTH: ContextVar[float | None] = ContextVar("width", default=None)


@contextmanager
def paper(
    width: float | None = None, font_size: float | None = None, caption: Literal["in"] | None = None
) -> Iterator[None]:
    """Draw figures for a page: within this context, new figures have a width, and all texts a size.

    Parameters
    ----------
    width : float, optional
        Millimetres of new figures, 80 to 400: 84 is a column of a journal, 174 a page. Leave it out for your own
        axes. Default: the width of the figure.
    font_size : float, optional
        Points of titles and names of axes, 6 to 24; numbers at ticks and legends are a little smaller, and no text is
        below 6. Default 0.9 of matplotlib's ``font.size``, which is 9.
    caption : {"in"}, optional
        Write captions into the images, under the kind of evidence. Default: captions are kept with the figures
        (:func:`caption_of`), and images show the kind of evidence alone.

    Raises
    ------
    SpecError
        If a number is out of range, or `caption` is something else.
    """
    for name, value, low, high in (("width", width, 80, 400), ("font_size", font_size, 6, 24)):
        if value is not None and not low <= value <= high:
            raise SpecError(f"{name} must be from {low} to {high}; got {value!r}")
    if caption not in (None, "in"):
        raise SpecError(f"caption must be 'in' or None; got {caption!r}")
    token = _WIDTH.set(_WIDTH.get() if width is None else width / 25.4)
    within = WITHIN.set(WITHIN.get() or caption == "in")
    try:
        with mpl.rc_context({} if font_size is None else {"font.size": font_size / 0.9}):
            yield
    finally:
        _WIDTH.reset(token)
        WITHIN.reset(within)


def pt(size: float) -> float:
    """Points of a text of a size, relative to titles of 9; never too small to read."""
    return max(size * _scale(), _SMALLEST)


def _scale() -> float:
    """Size of texts, where 1 is that of matplotlib's own settings."""
    return float(mpl.rcParams["font.size"] / 10)


def line_height(lines: float = 1) -> float:
    """Inches that lines of a title are high."""
    return _LINE * _scale() * lines


def page(width: float) -> float:
    """Inches of the width of a new figure, `width` unless :func:`paper` says otherwise."""
    return _WIDTH.get() or width


def is_narrow() -> bool:
    """Whether the page of new figures is too narrow for legends beside axes."""
    return page(_COLUMN) < _COLUMN


def new_axes(width: float, height: float) -> Axes:
    """Axes on a new figure of a size in inches, without pyplot's global state; a narrower figure is less high."""
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


def draw_marks(ax: Axes, marks: Iterable[Mark]) -> None:
    """Draw a thin dashed line at each step with events, and their names along it."""
    labels: dict[int, dict[str, None]] = {}
    for step, label in marks:
        labels.setdefault(step, {})[label] = None
    for step, names in sorted(labels.items()):
        ax.axvline(step, color=INK, linewidth=0.8, linestyle=(0, (4, 3)), alpha=0.8, zorder=1)
        text = shorten(", ".join(names), _LABEL, placeholder=" …")
        ax.annotate(
            text,
            (step, 1),
            xycoords=ax.get_xaxis_transform(),
            xytext=(-2, -2),
            textcoords="offset points",
            rotation=90,
            ha="right",
            va="top",
            fontsize=pt(6.5),
            color=INK,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.6},
            zorder=4,
            annotation_clip=False,
        )


def name_outer(ax: Axes, others: Sequence[Axes], x: str, y: str) -> None:
    """Name the axes of a panel if no other panel is further left, or directly below, after the heading of a row."""
    right, covered = unused(ax, others)
    ax.set_xlabel("" if covered else x, fontsize=pt(9))
    ax.set_ylabel("" if right else "\n".join(filter(None, [ax.get_ylabel(), y])), fontsize=pt(9))


def colour_bar(mappable: Any, axes: Axes | Sequence[Axes], label: str, **layout: Any) -> Colorbar:
    """A colour bar with a label, next to the axes; below them if there are several panels on a narrow page."""
    several = [axes] if isinstance(axes, Axes) else axes
    figure: Any = several[0].get_figure(root=True)
    if is_narrow() and len(several) > 1:
        figure.set_figheight(figure.get_figheight() + 0.5)
        layout |= {"location": "bottom", "shrink": 0.8}
    bar: Colorbar = figure.colorbar(mappable, ax=several, **layout)
    bar.set_label(label, fontsize=pt(9))
    bar.ax.tick_params(labelsize=pt(8.5))
    return bar


def write_numbers(
    mesh: Any, table: np.ndarray, named: Callable[[float], str], places: tuple[np.ndarray, np.ndarray],
    size: float = 8,
) -> None:  # fmt: skip
    """Write the numbers (rows, columns) of a mesh into its places across and up, light on dark."""
    for row, column in zip(*np.nonzero(~np.isnan(table)), strict=True):
        red, green, blue, _ = mesh.cmap(mesh.norm(table[row, column]))
        ink = "white" if 0.299 * red + 0.587 * green + 0.114 * blue < 0.5 else "#222222"
        at = places[0][column], places[1][row]
        mesh.axes.text(*at, named(table[row, column]), ha="center", va="center", color=ink, fontsize=pt(size))


def legend_beside(ax: Axes, title: str, **options: Any) -> None:
    """Put the legend to the right of the axes; below them on a narrow figure, or if it is higher than the figure."""
    figure: Any = ax.get_figure(root=True)
    handles = options.get("handles", ax.get_legend_handles_labels()[0])
    # Entries stand half a line apart, and the heading of the axes takes its share of the height.
    lines = sum(str(handle.get_label()).count("\n") + 1.5 for handle in handles) + title.count("\n")
    if is_narrow() or line_height(0.85 * lines) > 0.65 * figure.get_figheight():
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
    widest = max(len(line) for text in texts for line in text) * _CHARACTER * pt(8.5) / 10 + 0.45
    rows = -(-len(handles) // max(int((inches + 0.2) // widest), 1))
    columns = -(-len(handles) // rows)
    figure.set_figheight(figure.get_figheight() + line_height(rows * max(map(len, texts)) + bool(title)) + 0.1)
    figure.legend(
        handles=list(handles), loc="outside lower left", ncols=columns, fontsize=pt(8), frameon=False,
        title=title, title_fontsize=pt(8), alignment="left",
    )  # fmt: skip


def heading(lines: Iterable[str], width: float) -> str:
    """The lines that are not empty, each broken to a width in inches."""
    every = "\n".join(lines).split("\n")
    most = max(int(width / (_CHARACTER * _scale())), 12)
    # A line that goes on ends with a space, which tells it from one that is whole.
    return "\n".join(fill(line, most, break_on_hyphens=False).replace("\n", " \n") for line in every if line)


def set_heading(ax: Axes, lines: Iterable[str]) -> None:
    """Set the title of axes, broken to their width; a legend beside the only axes of a figure leaves room above it."""
    figure: Any = ax.get_figure(root=True)
    if figure.get_layout_engine() is not None:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph ")  # saving says which are missing
            figure.get_layout_engine().execute(figure)  # the width that ticks and legend leave
    place = ax.get_position()
    shown = keep_caption(ax, lines)
    size = 7 if is_narrow() else 9
    width = figure.get_figwidth() * ((1 if len(figure.axes) == 1 else place.x1) - place.x0)
    title = heading(shown, width * 9 / size)
    ax.set_title(title, fontsize=pt(size), loc="left")
    if _WIDTH.get() is not None:
        figure.set_figheight(figure.get_figheight() + line_height(title.count("\n")))


def new_figure(lines: Iterable[str], width: float, height: float) -> Figure:
    """A figure of a width in inches, unless :func:`paper` sets another, and of a height that grows with the title."""
    inches = page(width)
    figure = Figure(figsize=(inches, height), layout="constrained")
    size = 7 if is_narrow() else 9
    title = heading(keep_caption(figure, lines), (inches - 0.1) * 9 / size)
    figure.set_figheight(height + line_height(title.count("\n") + 1))
    figure.suptitle(title, fontsize=pt(size), x=0.01, ha="left")
    return figure


def new_panels(
    names: Sequence[str],
    lines: Sequence[str],
    size: tuple[float, float],
    facets: Facets | None = None,
    n_columns: int | None = None,
    *,
    square: bool = False,
) -> tuple[Figure, list[Axes]]:
    """A figure with a panel for each name, in rows, under a common title; unused places stay empty.

    Parameters
    ----------
    names : sequence of str
        Titles of the panels.
    lines : sequence of str
        Lines of the common title.
    size : (float, float)
        Inches of a panel.
    facets : Facets, optional
        Places of the names in a grid whose rows and columns have headings; names may share a place.
    n_columns : int, optional
        Number of columns without facets. Default: one row for up to three panels, otherwise close to a square.
    square : bool
        Whether panels keep their shape on a narrow page; otherwise, their height shrinks less than their width.
    """
    if n_columns is None:
        n_columns = len(names) if len(names) <= 3 else int(np.ceil(np.sqrt(len(names))))
    n_columns = len(facets.columns) if facets else n_columns
    width, margin = page(max(size[0] * n_columns + 0.8, 6.4)), 0.5 if is_narrow() else 0.8
    if facets:
        n_rows, spots = len(facets.rows), [facets.places[name] for name in names]
        captions = dict(zip(spots, [facets.columns[across] if not down else "" for down, across in spots], strict=True))
    else:
        n_rows = -(-len(names) // max(min(n_columns, int((width - margin) / (_NARROWEST * size[0]))), 1))
        n_columns = -(-len(names) // n_rows) if n_rows > -(-len(names) // n_columns) else n_columns
        spots = [divmod(place, n_columns) for place in range(len(names))]
        captions = dict(zip(spots, names if len(names) > 1 else [""], strict=True))
    shrunk = min((width - margin) / n_columns / size[0], 1)
    size = (size[0] * shrunk, size[1] * (shrunk if square else shrunk**0.7))
    captions = {spot: heading([text], size[0] - 0.3) for spot, text in captions.items()}
    deepest = [max(captions[spot].count("\n") for spot in captions if spot[0] == row) for row in range(n_rows)]
    figure = new_figure(lines, width, size[1] * n_rows + line_height(sum(deepest)) + 0.3)
    grid = figure.add_gridspec(n_rows, n_columns)
    panels = {spot: figure.add_subplot(grid[spot]) for spot in captions}
    for spot, ax in panels.items():
        ax.set_title(captions[spot], fontsize=pt(9), loc="left")
        if facets and not spot[1]:
            ax.set_ylabel(heading([facets.rows[spot[0]]], size[1]))
    return figure, [panels[spot] for spot in spots]


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
