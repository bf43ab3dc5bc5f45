"""Figures of the command line, and their options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opinionsim.errors import SpecError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from opinionsim.store import Results


class Figures(StrEnum):
    """Figures that can be drawn."""

    PANELS = "panels"
    TRAJECTORIES = "trajectories"
    DISTRIBUTION = "distribution"
    RIBBONS = "ribbons"
    DENSITY = "density"
    NETWORK = "network"
    TRANSITIONS = "transitions"
    PHASE = "phase"
    BEFORE_AFTER = "before-after"


#: Figures of several runs together that show numbers of conditions.
_OF_CONDITIONS = (Figures.RIBBONS, Figures.DENSITY, Figures.TRANSITIONS, Figures.BEFORE_AFTER)
#: Arguments of figures that change no numbers.
_LOOKS = ("show", "scale", "contours", "theory", "width")
#: Figures that an option goes with; options without an entry go with all figures.
_GO_WITH: Mapping[str, tuple[Figures, ...]] = {
    "--run": (Figures.TRAJECTORIES, Figures.DISTRIBUTION, Figures.NETWORK),
    "--where": (Figures.PANELS, *_OF_CONDITIONS, Figures.PHASE),
    "--by": _OF_CONDITIONS,
    "--wording": (Figures.PANELS, *_OF_CONDITIONS, Figures.PHASE),
    "--replicate": (Figures.PANELS,),
    "--color-by": (Figures.PANELS, Figures.TRAJECTORIES),
    "--ddof": (Figures.PANELS, Figures.DISTRIBUTION),
    "--metric": (Figures.RIBBONS, Figures.PHASE),
    "--step": (Figures.NETWORK,),
    "--x": (Figures.PHASE,),
    "--y": (Figures.PHASE,),
    "--lines": (Figures.PHASE,),
    "--show": (Figures.PHASE,),
    "--scale": (Figures.PHASE,),
    "--contour": (Figures.PHASE,),
    "--theory": (Figures.PHASE,),
    "--width": (Figures.PHASE, Figures.BEFORE_AFTER),
    "--csv": (*_OF_CONDITIONS, Figures.NETWORK, Figures.PHASE),
}


def options_of(what: Figures, given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of a figure's function, from the values of command-line options; None stands for an absent option.

    Raises
    ------
    SpecError
        If an option does not go with the figure, or a required one is missing.
    """
    present = {option: value for option, value in given.items() if value is not None}
    for option in present:
        if what not in _GO_WITH[option]:
            *others, last = _GO_WITH[option]
            listed = f"{', '.join(others)} or {last}" if others else last
            raise SpecError(f"{option} goes with --what {listed}; got --what {what}")
    if what == Figures.PHASE and "--x" not in present:
        raise SpecError(
            "--what phase needs --x, a column of the runs that was swept, and takes a second as --y or --lines"
        )
    if what == Figures.RIBBONS and "--metric" in present:
        if len(present["--metric"]) > 1:
            raise SpecError(f"--what ribbons shows one metric; got {', '.join(present['--metric'])}")
        present["--metric"] = present["--metric"][0]
    if "--theory" in present:
        present["--theory"] = _curves(present["--theory"])
    present.pop("--csv", None)
    metric = "value" if what == Figures.PHASE else "metric"
    names = {"--step": "steps", "--metric": metric, "--contour": "contours"}
    return {names.get(option, option[2:].replace("-", "_")): value for option, value in present.items()}


def _curves(files: Sequence[Path]) -> dict[str, Any]:
    """Curves of CSV files by their labels, which must differ."""
    from opinionsim.plots import read_theory

    found: dict[str, Any] = {}
    for file in files:
        ((label, curve),) = read_theory(file).items()
        if label in found:
            raise SpecError(f"--theory {file}: another file names its curve {label!r} too")
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


def draw(results: Results, what: Figures, options: Mapping[str, Any]) -> Figure | Axes:
    """Draw a figure; `options` are those of its function."""
    from opinionsim import plots

    functions: Mapping[Figures, Any] = {
        Figures.PANELS: plots.panels,
        Figures.TRAJECTORIES: plots.trajectories,
        Figures.DISTRIBUTION: plots.final_distribution,
        Figures.RIBBONS: plots.ribbons,
        Figures.DENSITY: plots.density,
        Figures.NETWORK: plots.network_snapshots,
        Figures.TRANSITIONS: plots.transition_matrix,
        Figures.PHASE: plots.phase_diagram,
        Figures.BEFORE_AFTER: plots.before_after,
    }
    drawn: Figure | Axes = functions[what](_source(results, what), **options)
    return drawn


def numbers(results: Results, what: Figures, options: Mapping[str, Any]) -> pd.DataFrame:
    """The numbers of a figure as a frame; for a network, its agents."""
    from opinionsim import plots

    if what == Figures.NETWORK:
        return plots.snapshot_data(results, **options).nodes
    functions: Mapping[Figures, Any] = {
        Figures.RIBBONS: plots.ribbon_data,
        Figures.DENSITY: plots.density_data,
        Figures.TRANSITIONS: plots.transition_data,
        Figures.PHASE: plots.phase_data,
        Figures.BEFORE_AFTER: plots.before_after_data,
    }
    counted = {name: value for name, value in options.items() if name not in _LOOKS}
    frame: pd.DataFrame = functions[what](_source(results, what), **counted).frame
    return frame
