"""Draw a declared figure from results, built in or your own."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any, cast

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.figure import Figure

from opinionsim.errors import SpecError
from opinionsim.registry import Part, blamed, built_in
from opinionsim.store import Results


def source_of(figure: Part, results: Results) -> Results | pd.DataFrame:
    """Return what a figure is drawn from: results, or the frame of units of a study without runs.

    Raises
    ------
    SpecError
        If the figure cannot show this kind of study.
    """
    kind = results.design_row.study
    if not figure.shows(kind):
        fit = ", ".join(name for name, each in built_in("figure").items() if each.shows(kind))
        raise SpecError(f"{results.name} is {results.study.about}; valid figures: {fit or 'none'}")
    found: Results | pd.DataFrame = results.study.source(results)
    return found


def drawn(figure: Part, results: Results, settings: Mapping[str, Any]) -> Figure:
    """Draw a figure of results and return the whole figure.

    Parameters
    ----------
    figure : Part
        The figure.
    results : Results
        The results to draw.
    settings : mapping
        Arguments of its function in addition to the results.

    Raises
    ------
    SpecError
        If the figure does not fit these results, or if your own figure fails or returns something else.
    """
    found = figure.build(source_of(figure, results), options=settings)
    whole = found.get_figure(root=True) if isinstance(found, Artist) else None
    figure.expect(isinstance(whole, Figure), "must return a figure of matplotlib, or axes that lie on one", found)
    if figure.outside:
        # What cannot be drawn is found out here, and not where it is saved.
        with blamed(figure):
            whole.draw_without_rendering()  # type: ignore[union-attr]
    return cast("Figure", whole)


def check_numbers(figure: Part) -> None:
    """Refuse to save the numbers of a figure that has none."""
    if "numbers" not in figure.declared:
        counted = [name for name, each in built_in("figure").items() if "numbers" in each.declared]
        fit = f"{', '.join(counted)}, and your own figures with `numbers`"
        raise SpecError(f"--csv goes with the figures {fit}; got {figure.name}")


def numbers(results: Results, figure: Part, arguments: Mapping[str, Any]) -> pd.DataFrame:
    """The numbers of a figure as a frame."""
    count = figure.declared["numbers"]
    # Others change how a figure looks.
    counted = signature(count).parameters.keys() & arguments.keys()
    with blamed(figure):
        found = count(source_of(figure, results), **{each: arguments[each] for each in counted})
    frame: pd.DataFrame = getattr(found, "frame", found)
    figure.expect(isinstance(frame, pd.DataFrame), "must have `numbers` that return a frame", found)
    return frame
