"""Distribution of the final opinions of one run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from opinionsim import metrics
from opinionsim.drawing import BAR, is_narrow, legend_beside, new_axes, opinion_ticks, pt, set_heading, signed, tidy
from opinionsim.opinions import OpinionScale
from opinionsim.plots._inputs import HasFrames
from opinionsim.plots._trajectories import TrajectoryData, trajectory_data
from opinionsim.registry import part

#: The look of the mean, which no other line of these figures has.
MEAN: Mapping[str, Any] = {"color": "black", "linestyle": (0, (5, 1.5)), "linewidth": 1.4}


@dataclass(frozen=True, eq=False)
class FinalData:
    """Data of a histogram of final opinions.

    Attributes
    ----------
    counts : ndarray (k,)
        Number of agents at each point of `scale`.
    bias, diversity : float
        Mean and standard deviation of the final opinions; NaN if there are none or too few
        (:func:`opinionsim.metrics.run_metrics`).
    ddof : int
        Correction of the standard deviation.
    n_agents, n_never : int
        Number of all agents, and of agents that were never measured, which are in no bin.
    scale : OpinionScale
        The opinion scale, k points.
    title : str
        Condition, run and instrument.
    evidence : str
        Kind of evidence the run is, in words.
    """

    counts: np.ndarray
    bias: float
    diversity: float
    ddof: int
    n_agents: int
    n_never: int
    scale: OpinionScale
    title: str
    evidence: str

    @property
    def moments(self) -> tuple[str, str]:
        """Mean opinion and diversity as texts."""
        return f"mean {_printed(self.bias)}", f"diversity {_printed(self.diversity)}"


def _printed(value: float) -> str:
    """A metric with two decimals, or a dash where it has no value."""
    return "\N{EN DASH}" if np.isnan(value) else signed(value)


def from_trajectories(data: TrajectoryData, ddof: int = 0) -> FinalData:
    """Return the final distribution of a trajectory plot."""
    final = data.values[:, -1]
    found = metrics.distribution(final, data.scale)
    return FinalData(
        counts=found.counts,
        bias=math.nan if data.withheld else metrics.bias(final),
        diversity=math.nan if data.withheld else metrics.diversity(final, ddof),
        ddof=ddof,
        n_agents=len(final),
        n_never=found.n_missing,
        scale=data.scale,
        title=data.title,
        evidence=data.evidence,
    )


def final_data(
    results: HasFrames,
    run: str | int | None = None,
    kind: str | None = None,
    ddof: int = 0,
    scale: OpinionScale | None = None,
) -> FinalData:
    """Return the data of a histogram of final opinions.

    Parameters
    ----------
    results, run, kind, scale
        As for :func:`opinionsim.plots.trajectory_data`.
    ddof : int
        Correction of the standard deviation.

    Returns
    -------
    FinalData
        Counts at each scale point, bias and diversity.
    """
    return from_trajectories(trajectory_data(results, run, kind, scale), ddof)


def draw_final(data: FinalData, ax: Axes, *, horizontal: bool) -> None:
    """Draw unit bins and a line at the mean; horizontal bars share an axis with a trajectory plot."""
    bars, line = (ax.barh, ax.axhline) if horizontal else (ax.bar, ax.axvline)
    bars(data.scale.values, data.counts, 1.0, color=BAR, edgecolor="white", linewidth=1.2)
    if not np.isnan(data.bias):
        line(data.bias, **MEAN)
    if horizontal:
        ax.set_xticks([data.n_agents])
    else:
        ax.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    (ax.set_xlim if horizontal else ax.set_ylim)(0, data.n_agents)
    tidy(ax)


@part("figure", name="distribution")
def final_distribution(
    results: HasFrames,
    run: str | int | None = None,
    kind: str | None = None,
    ax: Axes | None = None,
    ddof: int = 0,
) -> Axes:
    """Draw the number of agents of one run at each final opinion.

    Parameters
    ----------
    results, run, kind
        As for :func:`opinionsim.plots.trajectory_data`.
    ax : Axes, optional
        Where to draw; default axes on a new figure (``ax.figure``).
    ddof : int
        Correction of the standard deviation, stated in the caption.

    Returns
    -------
    Axes
        A dashed line marks the mean opinion, and its label states the mean and the diversity.

    Raises
    ------
    SpecError
        If there is no such run or no stance was measured on such texts.

    Notes
    -----
    Chuang et al. 2023, figures 4-6 (A15).
    """
    data = final_data(results, run, kind, ddof)
    ax = new_axes(6.4, 3.8) if ax is None else ax
    draw_final(data, ax, horizontal=False)
    ax.set_xticks(
        data.scale.points,
        [label.replace("  ", " ").replace(" ", "\n") for label in opinion_ticks(data.scale, words=not is_narrow())],
    )
    ax.set_xlabel("opinion at the end", fontsize=pt(9))
    ax.set_ylabel("agents", fontsize=pt(9))
    bars = Patch(color=BAR, label="agents at the end")
    mean = Line2D([], [], **MEAN, label="\n".join(data.moments))
    legend_beside(ax, "", handles=[bars] if np.isnan(data.bias) else [bars, mean])
    never = f"{data.n_never} of {data.n_agents} agents were never measured" if data.n_never else ""
    what = "Number of agents at each opinion at the end of one run. The dashed line is their mean opinion."
    summary = f"{data.moments[0]}; {data.moments[1]}, the standard deviation of opinions over agents (ddof {data.ddof})"
    set_heading(ax, [data.evidence, what, f"condition: {data.title}", summary, never])
    return ax
