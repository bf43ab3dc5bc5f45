"""The figures that fit an experiment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from opinionsim import plots
from opinionsim.analysis import point_axes, point_measures
from opinionsim.contrasts import analysis_of
from opinionsim.errors import MeasurementError, SpecError
from opinionsim.metrics import condition_axes
from opinionsim.registry import find, summary
from opinionsim.report._templates import WORDS
from opinionsim.store import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Most measures of a classic sweep that have a panel, and steps beyond which opinions are drawn over time.
_PANELS, _STEPS = 4, 3


@dataclass(frozen=True, eq=False)
class Drawn:
    """A figure of a study.

    Attributes
    ----------
    name : str
        File name without suffix.
    caption : str
        What it shows; its title states the kind of evidence.
    draw : callable
        The figure, which is drawn once.
    """

    name: str
    caption: str
    draw: Callable[[], Figure | Axes]

    def save(self, path: Path) -> bytes:
        """Write it to a file (:func:`opinionsim.plots.save`); its parts keep the places they have in the first one.

        Returns
        -------
        bytes
            What the file holds.
        """
        drawn: Any = self.draw()
        written = plots.save(drawn, path).read_bytes()
        # To find places takes as long as to draw.
        drawn.get_figure(root=True).set_layout_engine("none")
        return written


def figures_of(results: Results) -> Iterator[Drawn]:
    """The figures that can be drawn of an experiment; each is drawn, to find out."""
    for name, draw in _candidates(results):
        drawn = cache(draw)
        try:
            drawn()
        except (SpecError, MeasurementError):
            # There is nothing of that kind on record, or not enough.
            continue
        yield Drawn(name, WORDS["figures"].get(name) or summary(find("figure", name)), drawn)


def _candidates(results: Results) -> Iterator[tuple[str, Callable[[], Figure | Axes]]]:
    """Figures that the design suggests."""
    if results.swept:
        points = results.points[results.points["error"] == ""]
        axes = [axis for axis in point_axes(points) if points[axis].nunique() > 1]
        measures = [name for name in point_measures(points) if "@" not in name][:_PANELS]
        # Further axes are each held at their first value.
        yield from _phase(points, axes, value=measures, where={axis: points[axis].iloc[0] for axis in axes[2:]})
        return
    for name in results.extras("figures"):
        yield name, partial(find("figure", name).target, results)
    if not (results.runs["status"] == "complete").any():
        return
    # A panel is of one run, which says little where that is one person.
    if (results.runs["n_agents"] > 1).any():
        yield "panels", lambda: plots.panels(results)
    # As in tables, topics are no condition where anything else varies.
    varying = condition_axes(results.runs)
    by = [axis for axis in varying if axis != "topic"] or None
    if results.opinions["step"].nunique() > _STEPS:
        yield "ribbons", lambda: plots.ribbons(results, by=by)
        yield "diversity", lambda: plots.ribbons(results, "diversity", by=by)
        yield "transitions", lambda: plots.transition_matrix(results, by=by)
    yield "before-after", lambda: plots.before_after(results)
    axes = [axis for axis in varying if pd.api.types.is_numeric_dtype(results.runs[axis])]
    yield from _phase(results, axes)
    analysis = analysis_of(results.spec)
    if analysis.decides is not None and (analysis.choices or results.spec.get("robustness")):
        yield "specification-curve", lambda: plots.specification_curve(results)


def _phase(source: Any, axes: list[str], **options: Any) -> Iterator[tuple[str, Callable[[], Axes]]]:
    """The figure over the first two of the axes, if there are any."""
    chosen: Any = axes[:2]
    if chosen:
        yield "phase", lambda: plots.phase_diagram(source, *chosen, **options)
