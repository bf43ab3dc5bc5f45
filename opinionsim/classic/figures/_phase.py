"""Phase diagrams: measures of runs over one or two swept parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from pandas.api.types import is_numeric_dtype

from opinionsim.classic.figures._levels import Scale, check_scale, levels_of, parameter_name
from opinionsim.classic.figures._phase_data import PhaseData, PhasePanel, phase_data
from opinionsim.classic.figures._phase_lines import MOST_LINES, draw_phase_lines, line_colours
from opinionsim.classic.figures._phase_map import check_contours, draw_phase_map
from opinionsim.classic.figures._theory import Curve, Theory, curves, of_files
from opinionsim.classic.sweeps import point_axes, point_measures
from opinionsim.drawing import band_handles, legend_below, new_figure, page, pt, set_heading
from opinionsim.errors import SpecError
from opinionsim.metrics import condition_axes
from opinionsim.plots import HasFrames, Shown
from opinionsim.registry import part
from opinionsim.store import Results

#: Millimetres of an inch, and the least of a figure and of each of several panels side by side.
_INCH, _PANEL = 25.4, 84.0
#: Most measures of a classic sweep that a report shows.
_MEASURES = 4
#: Height of a panel as a part of its width, its greatest inches, and inches of the axes' names.
_SHAPE, _HIGHEST, _LEFT = 0.74, 4.3, 0.75
_QUANTITIES: Mapping[str, tuple[Literal["mean", "spread"], ...]] = {
    "mean": ("mean",),
    "spread": ("spread",),
    "both": ("mean", "spread"),
}


def _shown(results: Results) -> Iterator[Shown]:
    """Over the first two of the fields that were swept; in a classic sweep others are held at their first value."""
    if not results.run_ids:
        points = results.study.source(results)
        axes = [axis for axis in point_axes(points) if points[axis].nunique() > 1]
        measures = [name for name in point_measures(points) if "@" not in name][:_MEASURES]
        settings = {"value": measures, "where": {axis: points[axis].iloc[0] for axis in axes[2:]}}
    else:
        axes = [axis for axis in condition_axes(results.runs) if is_numeric_dtype(results.runs[axis])]
        settings = {}
    if axes:
        over = dict(zip("xy", axes, strict=False))
        yield Shown("phase", "Values at the end over the fields that were swept.", {**over, **settings})


@part("figure", name="phase", numbers=phase_data, shown=_shown, studies=("agents", "scan"))
def phase_diagram(
    source: HasFrames | pd.DataFrame,
    x: str,
    y: str | None = None,
    value: str | Sequence[str] = "diversity",
    where: Mapping[str, Any] | None = None,
    kind: str | None = None,
    band: Literal["runs", "mean"] = "runs",
    level: float = 0.9,
    ax: Axes | None = None,
    wording: str | None = None,
    *,
    lines: str | None = None,
    show: Literal["mean", "spread", "both"] = "mean",
    scale: Mapping[str, Scale] | None = None,
    contours: Sequence[float] = (),
    theory: Theory | None = None,
) -> Axes:
    """Draw measures of runs over one or two swept parameters.

    Parameters
    ----------
    source, x, y, value, where, kind, band, level, wording, lines
        As for :func:`phase_data`. Each measure has a panel.
    ax : Axes, optional
        Where to draw one panel; default axes on a new figure (``ax.figure``).
    show : {"mean", "spread", "both"}
        The mean over runs, their standard deviation, or a panel of each.
    scale : mapping, optional
        Column to "linear" or "log": of a parameter the scale of its axis, of a measure that of its means.
    contours : sequence of float
        Means at which a map has a contour, whether the mean or the spread is shown.
    theory : mapping of str to callable or (x, y), str or list of str, optional
        Curves on top, by the label they have in the legend: functions of `x`, or two arrays; or CSV files of one curve
        each (:func:`read_theory`). On lines, `y` is a value of the one measure; on a map, a value of the parameter `y`.
        They widen the axis only a little.

    Returns
    -------
    Axes
        The first panel. A map has a place for each crossing of levels, which reaches halfway to the next level and is
        hatched grey if there is no value. Over one parameter there is a line, with a band for means; with
        more than 10 lines, a colour scale replaces distinct colours, and bands are left out. Levels that are not
        numbers are spaced evenly. The
        title states the evidence, the number of runs, and how many of them had not stopped at the limit of steps.

    Raises
    ------
    SpecError, MeasurementError
        As for :func:`phase_data`; or if an argument does not fit the data: a logarithmic axis of numbers that are not
        above 0, contours without a grid of numbers or beyond the means, a curve over levels that are not numbers,
        a spread without two runs at any point, several panels for one `ax`.
    """
    if show not in _QUANTITIES:
        raise SpecError(f"show must be 'mean', 'spread' or 'both'; got {show!r}")
    read = of_files(theory)
    data = phase_data(source, x, y, value, where, kind, band, level, wording, lines=lines)
    panels = [(measure, quantity) for measure in data.labels for quantity in _QUANTITIES[show]]
    if ax is not None and len(panels) > 1:
        raise SpecError(f"ax holds one panel, and {len(panels)} are asked for; leave ax out, or draw one measure")
    for measure in data.labels if show != "mean" else ():
        if data.of(measure)["spread"].isna().all():
            raise SpecError(f"the spread of {measure} needs at least two runs at a point, but no point has them")
    drawing = _Drawing(data, scale, contours, read)
    title = [data.evidence, *data.notes, drawing.band if "mean" in _QUANTITIES[show] else ""]
    title += ["spread: standard deviation over runs"] if show != "mean" else []
    if ax is not None:
        figure = ax.get_figure(root=True)
        place = ax.get_position()
        inches = (6.0, 4.0) if figure is None else figure.get_size_inches() * (place.width, place.height)
        handles = drawing.draw(*panels[0], ax, (float(inches[0]), float(inches[1])))
        if handles:
            ax.legend(handles=handles, title=drawing.legend_title, title_fontsize=pt(8), fontsize=pt(8))
        set_heading(ax, title)
        return ax
    return _new_figure(drawing, panels, title, page(174.0 / _INCH))


class _Drawing:
    """What all panels of a figure have in common."""

    def __init__(
        self,
        data: PhaseData,
        scale: Mapping[str, Scale] | None,
        contours: Sequence[float],
        theory: Mapping[str, Curve] | None,
    ) -> None:
        self.data = data
        swept = [name for name in (data.x, data.y, data.lines) if name is not None]
        self.scale = check_scale(scale, [*swept, *data.labels])
        levels = {name: levels_of(data.frame[name], name, self.scale, data.titles) for name in swept}
        self.x = levels[data.x]
        self.y, self.lines = (None if name is None else levels[name] for name in (data.y, data.lines))
        line_colours(self.lines)
        if self.y is None:
            if len(list(contours)):
                raise SpecError("contours are drawn on a map; set y as well")
            if theory and len(data.labels) > 1:
                raise SpecError(f"theory is a curve of one measure; got {', '.join(data.labels)}")
            self.contours = []
        else:
            self.contours = check_contours(data, list(contours), self.x, self.y)
        uneven = [each.column for each in (self.x, self.y) if each is not None and not each.numeric]
        if theory and uneven:
            raise SpecError(f"theory needs axes of numbers; levels of {' and '.join(uneven)} are not")
        edges = self.x.edges if self.y is not None or len(self.x.levels) == 1 else self.x.places
        up = None if self.y is None else (float(self.y.edges[0]), float(self.y.edges[-1]))
        self.theory = curves(theory, (float(edges[0]), float(edges[-1])), up, log=self.x.log)

    @property
    def band(self) -> str:
        """Meaning of the bands of the lines, in words."""
        if self.y is not None or not self.data.band:
            return ""
        many = self.lines is not None and len(self.lines.levels) > MOST_LINES
        return f"more than {MOST_LINES} lines: no bands" if many else self.data.band

    @property
    def legend_title(self) -> str | None:
        """Name of the parameter whose levels the legend lists."""
        return None if self.lines is None else parameter_name(self.lines.column)

    def draw(
        self, measure: str, quantity: Literal["mean", "spread"], ax: Axes, size: tuple[float, float]
    ) -> list[Artist]:
        """Draw one panel, and return the entries of its legend."""
        theory = self.theory if quantity == "mean" or self.y is not None else {}
        panel = PhasePanel(self.data, measure, quantity, self.x, theory, ax, size, self.scale.get(measure) == "log")
        if self.y is not None:
            return draw_phase_map(panel, self.y, self.contours)
        lines = [*draw_phase_lines(panel, self.lines)]
        # Spreads have neither bands nor dots of runs, and many lines have none either.
        band = self.band if quantity == "mean" and self.band == self.data.band else ""
        return [*lines, *band_handles(band, marker="o", markersize=2.5, linestyle="none")]


def _new_figure(
    drawing: _Drawing, panels: Sequence[tuple[str, Literal["mean", "spread"]]], title: Sequence[str], inches: float
) -> Axes:
    """Draw the panels into a figure of a width in inches, with the legend below; return the first."""
    n_columns = max(min(int(inches * _INCH // _PANEL), len(panels)), 1)
    n_rows = -(-len(panels) // n_columns)
    high = min(_SHAPE * inches / n_columns, _HIGHEST)
    size = (inches / n_columns - _LEFT - (0.85 if drawing.y is not None else 0.1), high - 0.55)
    figure = new_figure(title, inches, high * n_rows)
    grid = figure.add_gridspec(n_rows, n_columns)
    axes = [figure.add_subplot(grid[divmod(place, n_columns)]) for place in range(len(panels))]
    handles: dict[str, Artist] = {}
    for (measure, quantity), each in zip(panels, axes, strict=True):
        handles |= {str(handle.get_label()): handle for handle in drawing.draw(measure, quantity, each, size)}
    if handles:
        legend_below(figure, list(handles.values()), drawing.legend_title)
    return axes[0]
