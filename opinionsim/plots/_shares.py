"""Shares of the agents at each opinion, for simulations whose opinions are discrete."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from opinionsim.drawing import legend_beside, opinion_map, pt, time_axis
from opinionsim.errors import SpecError, whole_number
from opinionsim.plots._inputs import FigureNumbers
from opinionsim.plots._over_time import Source, one_trajectory

#: Most opinions with an area of their own by default.
_MOST_OPINIONS = 6
#: Smallest distance of opinions, as a part of the range, at which they are coloured by their values.
_NEAR = 0.1
#: Colour of agents at opinions without an area of their own: lighter than that of any opinion.
_OTHERS = "#E9E9E9"


@dataclass(frozen=True, eq=False)
class ShareData(FigureNumbers):
    """Shares of the agents of a simulated run at each opinion.

    Attributes
    ----------
    frame : DataFrame
        One row an opinion and a moment, opinions ascending and then all others together: ``run_id, cell, opinion,
        step, share, evidence``. ``opinion`` is NaN for the others, if there are any; shares of a moment sum to 1.
    n_others : int
        Number of opinions that are counted together as others.
    span : (float, float)
        Range of opinions.
    evidence : str
        Kind of evidence the run is, in words.
    notes : tuple of str
        Model, parameters, replicate, meaning of the areas, and which opinions are named if not all are.
    """

    n_others: int
    span: tuple[float, float]
    what = "share of agents at each opinion over time"


def share_data(source: Source, run: str | int | None = None, most: int = _MOST_OPINIONS) -> ShareData:
    """Return the data of the areas of one run of a simulation with discrete opinions.

    Parameters
    ----------
    source : SimulatedRuns, or a sequence or mapping with one
        The simulation.
    run : int, optional
        The replicate; default 0.
    most : int
        Maximum number of opinions with a separate area: the most common over all records, and the lower of equally
        common ones. The others are counted together.

    Returns
    -------
    ShareData
        Opinions that occur at any moment.

    Raises
    ------
    SpecError
        If there is no such replicate, several simulations or a store are given, opinions are continuous, or
        `most` is not a whole number >= 1.
    """
    whole_number("most", most, 1)
    trajectory, drawn = one_trajectory(source, run, None)
    if not trajectory.discrete:
        raise SpecError("share_data takes simulations with discrete opinions; for others, use density_data")
    found, where = np.unique(trajectory.values, return_inverse=True)
    common = np.argsort(-np.bincount(where.ravel()), kind="stable")[:most]
    kept = np.sort(common)
    place = np.full(len(found), len(kept))
    place[kept] = np.arange(len(kept))
    n_moments, n_agents = trajectory.values.shape
    n_others, n_areas = len(found) - len(kept), len(kept) + (len(found) > len(kept))
    cell = np.arange(n_moments)[:, None] * n_areas + place[where.reshape(trajectory.values.shape)]
    counts = np.bincount(cell.ravel(), minlength=n_moments * n_areas).reshape(n_moments, n_areas)
    opinions = np.append(found[kept], [np.nan] * (n_areas - len(kept)))
    notes = [*drawn.notes]
    if n_others:
        notes.append(f"the {len(kept)} commonest of {len(found):,} opinions named, over all records")
    frame = pd.DataFrame(
        {
            "run_id": trajectory.run_id,
            "cell": trajectory.cell,
            "opinion": np.repeat(opinions, n_moments),
            "step": np.tile(trajectory.times, n_areas),
            "share": (counts / n_agents).T.ravel(),
            "evidence": trajectory.evidence,
        }
    )
    return ShareData(frame, drawn.evidence, tuple(notes), n_others, drawn.span)


def draw_shares(data: ShareData, ax: Axes, *, legend: bool) -> None:
    """Draw an area for each opinion, the lowest at the bottom and the others on top; a legend names them."""
    times = data.frame["step"].unique().astype(float)
    opinions = data.frame["opinion"].to_numpy(float)[:: len(times)]
    shares = data.frame["share"].to_numpy(float).reshape(len(opinions), len(times))
    known = opinions[~np.isnan(opinions)]
    colours = [*opinion_map()(_places(known, data.span)), *([_OTHERS] if data.n_others else [])]
    names = [f"{opinion:g}".replace("-", "\N{MINUS SIGN}") for opinion in known]
    names += [f"others ({data.n_others:,})"] if data.n_others else []
    if len(times) == 1:
        # A single record is an area as wide as the axes.
        times, shares = np.array([times[0], times[0] + 1]), np.repeat(shares, 2, axis=1)
    areas = ax.stackplot(times, shares, colors=colours, labels=names, edgecolor="white", linewidth=0.4)
    ax.set(xlim=(times[0], times[-1]), ylim=(0, 1))
    ax.set_ylabel("share of agents", fontsize=pt(9))
    time_axis(ax)
    if legend:
        legend_beside(ax, "opinion", handles=areas[::-1])


def _places(opinions: np.ndarray, span: tuple[float, float]) -> np.ndarray:
    """Places in the colour map, from 0 to 1: those in the range, or evenly spaced where opinions are too close."""
    low, high = span
    if np.isfinite(span).all() and high > low:
        places = (opinions - low) / (high - low)
        if not (np.diff(places) < _NEAR).any():
            return places
    return np.linspace(0, 1, len(opinions))
