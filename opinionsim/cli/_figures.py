"""Figures of the command line, and their settings."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from opinionsim.errors import SpecError
from opinionsim.registry import find, names

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from opinionsim.store import Results


_NAMES = (
    "panels",
    "trajectories",
    "distribution",
    "ribbons",
    "density",
    "network",
    "transitions",
    "phase",
    "before-after",
    "specification-curve",
)
#: Figures that can be drawn.
Figures = StrEnum("Figures", {name.upper().replace("-", "_"): name for name in (*_NAMES, *names("figure"))})  # type: ignore[misc]


#: The function of :mod:`opinionsim.plots` that draws each figure, whose arguments are the settings; the one that counts
#: its numbers, if there is one, and what of them is a frame.
_FUNCTIONS: Mapping[Figures, tuple[str, str, str]] = {
    Figures.PANELS: ("panels", "", ""),
    Figures.TRAJECTORIES: ("trajectories", "", ""),
    Figures.DISTRIBUTION: ("final_distribution", "", ""),
    Figures.RIBBONS: ("ribbons", "ribbon_data", "frame"),
    Figures.DENSITY: ("density", "density_data", "frame"),
    Figures.NETWORK: ("network_snapshots", "snapshot_data", "nodes"),
    Figures.TRANSITIONS: ("transition_matrix", "transition_data", "frame"),
    Figures.PHASE: ("phase_diagram", "phase_data", "frame"),
    Figures.BEFORE_AFTER: ("before_after", "before_after_data", "frame"),
    Figures.SPECIFICATION_CURVE: ("specification_curve", "", ""),
}


def _function(what: Figures) -> Any:
    """The function that draws a figure."""
    from opinionsim import plots

    return getattr(plots, _FUNCTIONS[what][0]) if what in _FUNCTIONS else find("figure", what.value).target


def check_arguments(what: Figures, given: Mapping[str, Any]) -> None:
    """Check settings against the arguments of a figure's function.

    Raises
    ------
    SpecError
        If the function takes no argument of a name, a value is of another sort, or a required one is missing.
    """
    from inspect import Parameter, signature
    from typing import get_type_hints

    from pydantic import create_model

    from opinionsim.documents import DocumentModel, validate

    function = _function(what)
    # A curve is read from its file.
    sorts = {**get_type_hints(function), "theory": str | list[str]}
    _, *taken = signature(function).parameters.values()
    fields: dict[str, Any] = {
        each.name: (sorts[each.name], ... if each.default is Parameter.empty else each.default)
        for each in taken
        if each.name != "ax" and each.kind is not Parameter.VAR_KEYWORD
    }
    validate(create_model(what.name, __base__=DocumentModel, **fields), given, f"--what {what}")


def check_numbers(what: Figures) -> None:
    """Refuse to count the numbers of a figure that has none to save."""
    if not (_FUNCTIONS[what][1] if what in _FUNCTIONS else hasattr(_function(what), "numbers")):
        counted = [figure for figure, (_, counts, _) in _FUNCTIONS.items() if counts]
        raise SpecError(f"--csv goes with --what {', '.join(counted)}; got --what {what}")


def _curves(files: str | list[str]) -> dict[str, Any]:
    """Curves of CSV files by their labels, which must differ."""
    from opinionsim.plots import read_theory

    found: dict[str, Any] = {}
    for file in [files] if isinstance(files, str) else files:
        ((label, curve),) = read_theory(file).items()
        if label in found:
            raise SpecError(f"theory {file}: another file names its curve {label!r} too")
        found[label] = curve
    return found


def _source(results: Results, what: Figures) -> Results | pd.DataFrame:
    """What a figure is drawn from: results, or of a classic sweep the frame of its runs.

    Raises
    ------
    SpecError
        If it shows opinions or texts of a classic sweep, which keeps neither.
    """
    if not results.swept:
        return results
    if what != Figures.PHASE:
        raise SpecError(f"{results.name} is a classic sweep, which keeps measures alone: --what phase draws them")
    return results.points[results.points["error"] == ""]


def draw(results: Results, what: Figures, arguments: Mapping[str, Any]) -> Figure | Axes:
    """Draw a figure; `arguments` are those of its function, but for files of curves in the place of curves."""
    curves = {"theory": _curves(arguments["theory"])} if "theory" in arguments else {}
    drawn: Figure | Axes = _function(what)(_source(results, what), **{**arguments, **curves})
    return drawn


def numbers(results: Results, what: Figures, arguments: Mapping[str, Any]) -> pd.DataFrame:
    """The numbers of a figure as a frame; for a network, its agents."""
    from inspect import signature

    from opinionsim import plots

    if what in _FUNCTIONS:
        _, name, part = _FUNCTIONS[what]
        function = getattr(plots, name)
    else:
        function, part = _function(what).numbers
    # Others change how a figure looks.
    counted = signature(function).parameters.keys() & arguments.keys()
    frame: pd.DataFrame = getattr(function(_source(results, what), **{each: arguments[each] for each in counted}), part)
    return frame
