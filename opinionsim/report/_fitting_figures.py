"""The figures that fit an experiment."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from opinionsim import plots
from opinionsim.errors import MeasurementError, SpecError
from opinionsim.registry import Part, blamed, find, general, summary
from opinionsim.store import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Drawn:
    """A figure of a study.

    Attributes
    ----------
    name : str
        File name without suffix.
    caption : str
        What the figure shows, its source, how it was measured, and the kind of evidence.
    figure : Figure
        The figure.
    """

    name: str
    caption: str
    figure: Figure

    def save(self, path: Path) -> bytes:
        """Write the figure to a file (:func:`opinionsim.plots.save`); its parts keep their places from the first file.

        Returns
        -------
        bytes
            Content of the file.
        """
        written = plots.save(self.figure, path).read_bytes()
        # To find places takes as long as to draw.
        self.figure.set_layout_engine("none")
        return written


def figures_of(results: Results) -> Iterator[Drawn]:
    """Draw the primary outcome, the figures that the interactions name, then all others that fit and can be drawn.

    A named figure that cannot be drawn is left out (`failed` of the results). Other figures are left out if the
    records are not sufficient.
    """
    named = results.extras("figures")
    complete = (results.study.states(results) == "complete").any()
    first, *others = general("figure") if complete else ("",)
    for name in dict.fromkeys(filter(None, (first, *named, *others))):
        with _left_out(results, name, told=name in named):
            figure = find("figure", name)
            for shown in shown_as(figure, results, named=name in named):
                with _left_out(results, name, told=name in named):
                    whole = plots.drawn(figure, results, shown.settings)
                    yield Drawn(shown.name, f"{shown.caption} {plots.caption_of(whole)}".strip(), whole)


@contextmanager
def _left_out(results: Results, name: str, *, told: bool) -> Iterator[None]:
    try:
        yield
    except (SpecError, MeasurementError) as error:
        if told:
            results.leave_out("figure", name, error)


def shown_as(figure: Part, results: Results, *, named: bool = True) -> list[plots.Shown]:
    """How pages show a figure: as the figure declares, or once where it is named."""
    if not figure.shows(results.design_row.study):
        return []
    if "shown" not in figure.declared:
        return [plots.Shown(figure.name.replace(":", "."), summary(figure))] if named else []
    with blamed(figure):
        found = list(figure.declared["shown"](results))
    for each in found:
        is_one = isinstance(each, plots.Shown) and re.fullmatch(r"[\w.-]+", each.name)
        figure.expect(bool(is_one), "must declare a `shown` that yields plots.Shown, each named by a word", each)
    return found
