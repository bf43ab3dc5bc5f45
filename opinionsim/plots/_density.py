"""Distribution of opinions over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from opinionsim import drawing
from opinionsim.opinions import OpinionScale
from opinionsim.plots._arrangement import facets
from opinionsim.plots._inputs import FigureNumbers, drawn_from
from opinionsim.plots._over_time import Bins, Source, Trajectory, TrajectorySet, bins_of, stacked, trajectories_of
from opinionsim.registry import part
from opinionsim.store import Mark

#: Colour of moments at which no agent has an opinion.
_NONE = "#E4E4E4"


@dataclass(frozen=True, eq=False)
class DensityData(FigureNumbers):
    """Data of a figure of the distribution over time.

    Attributes
    ----------
    frame : DataFrame
        One row per condition, moment and interval of opinions: ``cell, step, low, high, opinion, share, n_runs,
        evidence``. ``share`` is the share of the agents that have an opinion, averaged over the ``n_runs`` runs with
        such agents; NaN where there are none. ``opinion`` is the point of the scale, or the middle of the interval.
    scale : OpinionScale or None
        The scale; None for numbers of a model.
    evidence : str
        Kind of evidence the runs are, in words.
    notes : tuple of str
        Settings that all runs share, the number of runs, and the validation of the instruments.
    events : dict of str to tuple of Mark
        Steps at which events of each condition begin, and their names.
    facets : Facets or None
        Places of the conditions in a grid of two factors; None where they form none.
    """

    scale: OpinionScale | None
    events: Mapping[str, tuple[Mark, ...]] = field(default_factory=dict)
    facets: drawing.Facets | None = None


def density_data(
    source: Source,
    kind: str | None = None,
    where: Mapping[str, Any] | None = None,
    by: str | Sequence[str] | None = None,
    bins: int = 40,
    wording: str | None = None,
) -> DensityData:
    """Return the data of a figure of the distribution over time.

    Parameters
    ----------
    source, kind, where, by, wording
        As for :func:`opinionsim.plots.ribbon_data`.
    bins : int
        Number of intervals of equal width over the range of opinions. If all opinions are points of a scale, they
        are counted at these points instead.

    Returns
    -------
    DensityData
        Shares, which sum to 1 for each condition and moment.

    Raises
    ------
    SpecError
        If there is nothing to draw, a name is not valid or conditions would be mixed.
    """
    drawn = trajectories_of(source, kind, where, by, wording)
    parts = [_shares(name, runs, bins_of(runs, drawn, bins)) for name, runs in drawn.cells.items()]
    return DensityData(
        pd.concat(parts, ignore_index=True),
        drawn.evidence,
        (*drawn.notes, _counted(drawn)),
        drawn.scale,
        {name: runs[0].events for name, runs in drawn.cells.items()},
        facets(drawn.factors),
    )


def _counted(drawn: TrajectorySet) -> str:
    """Note on the number of runs, and on agents left out of the shares."""
    said = drawn.averaged
    if any(np.isnan(run.values).any() for runs in drawn.cells.values() for run in runs):
        return f"{said}; shares leave out agents without an opinion"
    return said


def _shares(name: str, runs: Sequence[Trajectory], bins: Bins) -> pd.DataFrame:
    times, table = stacked(runs, [_histogram(run.values, bins) for run in runs])
    known = ~np.isnan(table[:, :, 0])
    n = known.sum(axis=0)
    total = np.where(known[:, :, None], table, 0).sum(axis=0)
    share = np.divide(total, n[:, None], out=np.full(total.shape, np.nan), where=n[:, None] > 0)
    k, rows = len(bins), len(times)
    return pd.DataFrame(
        {
            "cell": name,
            "step": np.repeat(times, k),
            "low": np.tile(bins.edges[:-1], rows),
            "high": np.tile(bins.edges[1:], rows),
            "opinion": np.tile(bins.centres, rows),
            "share": share.ravel(),
            "n_runs": np.repeat(n, k),
            "evidence": runs[0].evidence,
        }
    )


def _histogram(values: np.ndarray, bins: Bins) -> np.ndarray:
    """Share of the opinions (K, N) of each moment in each interval, (K, k); NaN at moments without opinions."""
    known = ~np.isnan(values)
    cell = np.arange(len(values))[:, None] * len(bins) + bins.place(values)
    counts = np.bincount(cell[known], minlength=len(values) * len(bins)).reshape(len(values), len(bins))
    n = known.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(counts, n, out=np.full(counts.shape, np.nan), where=n > 0))


def draw_density(rows: pd.DataFrame, ax: Axes, most: float) -> Any:
    """Draw the shares of one condition, with `most` the darkest, and return the mesh for a colour bar."""
    times = rows["step"].unique().astype(float)
    lows = rows["low"].unique()
    edges = np.append(lows, rows["high"].max())
    shares = rows["share"].to_numpy(float).reshape(len(times), len(lows)).T
    # A record stands for the time until the next one.
    last = times[-1] + (times[-1] - times[-2] if len(times) > 1 else 1)
    norm = PowerNorm(0.5, vmin=0, vmax=most)
    mesh = ax.pcolormesh(np.append(times, last), edges, np.ma.masked_invalid(shares), cmap=drawing.SHARES, norm=norm)
    mesh.set_rasterized(True)
    ax.set_facecolor(_NONE)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=3 if drawing.is_narrow() else 6, integer=True))
    ax.tick_params(labelsize=drawing.pt(8.5), length=3, color="#888888")
    return mesh


@part("figure", name="density", numbers=density_data)
@drawn_from(density_data)
def density(data: DensityData) -> Figure:
    """Draw the distribution of opinions over time, one panel per condition, averaged over its runs.

    Parameters
    ----------
    source, kind, where, by, bins, wording
        As for :func:`density_data`.

    Returns
    -------
    Figure
        Conditions of two factors are rows and columns. Dark places have many agents. All panels share one colour
        scale, which is finer at small shares. Moments at which no agent has an opinion are grey.

    Raises
    ------
    SpecError
        As for :func:`density_data`.
    """
    cells = dict(list(data.frame.groupby("cell", sort=False)))
    what = "Share of agents at each opinion over time: the darker, the more agents."
    size = (5.6, 3.0) if len(cells) == 1 else (3.5, 2.2)
    figure, axes = drawing.new_panels(
        [str(name) for name in cells], [data.evidence, what, *data.notes], size, data.facets
    )
    shares = data.frame["share"]
    most = float(shares.max()) if shares.notna().any() else 1.0
    for ax, (name, rows) in zip(axes, cells.items(), strict=True):
        mesh = draw_density(rows, ax, most)
        drawing.draw_marks(ax, data.events.get(str(name), ()))
        drawing.name_outer(ax, axes, "step", "opinion")
        if data.scale is not None:
            ax.set_yticks(data.scale.points, drawing.opinion_ticks(data.scale, words=len(cells) == 1))
    bar = drawing.colour_bar(mesh, axes, "share of agents", shrink=0.9, pad=0.015, aspect=26)
    bar.locator = MaxNLocator(nbins=3 if drawing.is_narrow() else 5)
    bar.update_ticks()
    if shares.isna().any():
        drawing.legend_below(figure, [Patch(facecolor=_NONE, label="no agent has an opinion yet")])
    return figure
