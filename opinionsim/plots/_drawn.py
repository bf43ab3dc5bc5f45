"""A figure drawn from results, whoever has declared it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.figure import Figure

from opinionsim.errors import SpecError
from opinionsim.registry import Part, blamed, built_in
from opinionsim.store import Results


def source_of(figure: Part, results: Results) -> Results | pd.DataFrame:
    """What a figure is drawn from: results, or of a classic sweep the frame of its runs.

    Raises
    ------
    SpecError
        If it shows opinions or texts of a classic sweep, which keeps neither.
    """
    if not results.swept:
        return results
    if not figure.declared.get("points"):
        fit = ", ".join(name for name, each in built_in("figure").items() if each.declared.get("points"))
        raise SpecError(f"{results.name} is a classic sweep, which stores only measures; valid figures: {fit}")
    return results.points[results.points["error"] == ""]


def drawn(figure: Part, results: Results, settings: Mapping[str, Any]) -> Figure:
    """Draw a figure of results: the whole of it.

    Parameters
    ----------
    figure : Part
        The figure.
    results : Results
        What it is of.
    settings : mapping
        Arguments of its function beside the results.

    Raises
    ------
    SpecError
        If the figure is not of such results; if one of the user's own fails, or returns something else.
    """
    found = figure.build(source_of(figure, results), options=settings)
    whole = found.get_figure(root=True) if isinstance(found, Artist) else None
    figure.expect(isinstance(whole, Figure), "must return a figure of matplotlib, or axes that lie on one", found)
    if figure.outside:
        # What cannot be drawn is found out here, and not where it is saved.
        with blamed(figure):
            whole.draw_without_rendering()  # type: ignore[union-attr]
    return cast("Figure", whole)
