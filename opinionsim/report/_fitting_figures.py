"""The figures that fit an experiment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opinionsim import plots
from opinionsim.errors import MeasurementError, SpecError
from opinionsim.registry import find, general, summary
from opinionsim.store import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
    for shown, draw in _candidates(results):
        drawn = cache(draw)
        try:
            drawn()
        except (SpecError, MeasurementError):
            # There is nothing of that kind on record, or not enough.
            continue
        yield Drawn(shown.name, shown.caption, drawn)


def _candidates(results: Results) -> Iterator[tuple[plots.Shown, Callable[[], Figure | Axes]]]:
    """Figures that the design suggests: those that its ways of interacting name, then those that fit."""
    named = results.extras("figures")
    complete = results.swept or (results.runs["status"] == "complete").any()
    source = results.points[results.points["error"] == ""] if results.swept else results
    for part in [find("figure", name) for name in (*named, *(general("figure") if complete else ()))]:
        if results.swept and not part.declared.get("points"):
            continue
        fitting = part.declared["shown"](results) if "shown" in part.declared else ()
        if part.name in named:
            fitting = [plots.Shown(part.name.replace(":", "."), summary(part))]
        for shown in fitting:
            yield shown, partial(part.build, source, options=shown.settings)
