"""Opinion of every agent over the steps of one run."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import fill

import numpy as np
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.ticker import MaxNLocator

from opinionsim import metrics
from opinionsim.opinions import OpinionScale
from opinionsim.plots._inputs import HasFrames, describe, outdated, pick_kind, pick_run, provenance
from opinionsim.plots._style import UNASSIGNED, legend_handles, new_axes, opinion_colours, opinion_ticks, tidy

__all__ = ["TrajectoryData", "draw_trajectories", "trajectories", "trajectory_data"]

#: Vertical distance between agents of equal opinion, in scale units (Chuang et al. 2023, figures 4-6; A15).
_JITTER = 0.03
#: Characters a line of the title may have on a figure of the default width.
_TITLE_WIDTH = 90
#: Widest total jitter, so that large groups stay closer to their own opinion than to the next.
_JITTER_SPAN = 0.7


@dataclass(frozen=True, eq=False)
class TrajectoryData:
    """What a trajectory plot shows of one run of N agents and T steps.

    Attributes
    ----------
    steps : ndarray (T + 1,)
        0 to T.
    values : ndarray (N, T + 1)
        Last measured opinion at each step, NaN before the first.
    measured : ndarray (N, T + 1)
        True where an opinion was measured at this very step.
    assigned : ndarray (N,)
        Opinion each agent was told to hold at the start; NaN for none.
    offsets : ndarray (N,)
        What is added to an agent's line so that equal opinions can be told apart; sums to 0.
    scale : OpinionScale
        The opinion scale.
    title : str
        Condition, run and instrument.
    instrument : str
        Which texts the opinions were coded from, and by what.
    evidence : str
        What kind of evidence the run is, in words.
    """

    steps: np.ndarray
    values: np.ndarray
    measured: np.ndarray
    assigned: np.ndarray
    offsets: np.ndarray
    scale: OpinionScale
    title: str
    instrument: str
    evidence: str


def jitter(n_agents: int) -> np.ndarray:
    """Vertical offset of each agent: 0.03 x index, centred, closer for more than 24 agents; shape (n_agents,)."""
    spacing = min(_JITTER, _JITTER_SPAN / max(n_agents - 1, 1))
    return spacing * (np.arange(n_agents) - (n_agents - 1) / 2)


def trajectory_data(
    results: HasFrames, run: str | int | None = None, kind: str | None = None, scale: OpinionScale | None = None
) -> TrajectoryData:
    """The numbers of a trajectory plot.

    Parameters
    ----------
    results : Results or Frames
        Frames of a store.
    run : str or int, optional
        Identity of a run, or its position in ``results.runs``; default the first complete run of the lowest
        replicate, named in the title.
    kind : str, optional
        Kind of text the opinions were coded from; default the first present of report, response, post, probe.
    scale : OpinionScale, optional
        Default read from the columns of the opinions.

    Returns
    -------
    TrajectoryData
        Arrays over agents and steps.

    Raises
    ------
    SpecError
        If there is no such run or no stance was measured on such texts.
    """
    own = pick_run(results, run)
    chosen = pick_kind(own.opinions, kind)
    row = own.runs.iloc[0]
    frame = metrics.trajectories(own.runs, own.agents, own.opinions, chosen)
    n_agents = int(row["n_agents"])
    by_agent = (n_agents, len(frame) // n_agents)
    instrument = f"{chosen}s coded by {row['classifier']}"
    replicates = results.runs.loc[results.runs["cell"] == row["cell"], "replicate"].nunique()
    return TrajectoryData(
        steps=np.arange(by_agent[1]),
        values=frame["value"].to_numpy(float).reshape(by_agent),
        measured=frame["measured"].to_numpy(bool).reshape(by_agent),
        assigned=frame["assigned_opinion"].to_numpy(float).reshape(by_agent)[:, 0],
        offsets=jitter(n_agents),
        scale=metrics.scale_of(own.opinions) if scale is None else scale,
        title="\n".join(filter(None, [describe(row), f"{provenance(row, replicates)}, {instrument}", outdated([row])])),
        instrument=instrument,
        evidence=metrics.evidence_statement([str(row["evidence"])]),
    )


def draw_trajectories(data: TrajectoryData, ax: Axes, *, words: bool) -> None:
    """Draw the lines of all agents; `words` puts verbal anchors at the ticks."""
    colours = opinion_colours(data.scale)
    for agent, (values, offset, held) in enumerate(zip(data.values, data.offsets, data.assigned, strict=True)):
        colour = UNASSIGNED if np.isnan(held) else colours[data.scale.nearest(held)]
        if not np.isnan(held):
            _draw_assigned(ax, held + offset, values + offset, colour)
        ax.plot(data.steps, values + offset, color=colour, linewidth=1.4, alpha=0.9, drawstyle="steps-post")
        at = np.flatnonzero(data.measured[agent])
        if at.size:  # an empty line that is not clipped has no extent, which defeats the layout of the figure
            (dots,) = ax.plot(data.steps[at], values[at] + offset, color=colour, linestyle="none", clip_on=False)
            dots.set(marker="o", markersize=2.8)
    ax.set_yticks(data.scale.points, opinion_ticks(data.scale, words=words))
    ax.set_ylim(data.scale.lowest - 0.5, data.scale.highest + 0.5)
    ax.set_xlim(0, max(data.steps[-1], 1))
    ax.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    ax.grid(axis="y", color="#E4E4E4", linewidth=0.8)
    tidy(ax)


def _draw_assigned(ax: Axes, held: float, values: np.ndarray, colour: str) -> None:
    """A ring at the assigned opinion, and a dotted line to the first measured one if there is any."""
    known = np.flatnonzero(~np.isnan(values))
    wait = [0, known[0], known[0]] if known.size else [0]
    path = [held, held, values[known[0]]] if known.size else [held]
    (line,) = ax.plot(wait, path, color=colour, linestyle=":", linewidth=1, clip_on=False, zorder=3)
    line.set(marker="o", markersize=5.5, markerfacecolor="white", markevery=[0])


def trajectories(
    results: HasFrames,
    run: str | int | None = None,
    kind: str | None = None,
    ax: Axes | None = None,
    legend: bool = True,
) -> Axes:
    """Draw the opinions of all agents of one run against steps.

    A line is coloured by the opinion its agent was assigned and starts where the agent was first measured;
    a ring and a dotted line show the assignment until then. Lines of equal opinion are set apart vertically.

    Parameters
    ----------
    results, run, kind
        As for :func:`trajectory_data`.
    ax : Axes, optional
        Where to draw; default axes on a new figure (``ax.figure``).
    legend : bool
        Explain the colours to the right of the axes.

    Returns
    -------
    Axes
        The title states run, instrument and evidence.

    Raises
    ------
    SpecError
        If there is no such run or no stance was measured on such texts.

    Notes
    -----
    Colours and jitter of Chuang et al. 2023, figures 4-6 (A15).
    """
    data = trajectory_data(results, run, kind)
    ax = new_axes(8.4, 3.9) if ax is None else ax
    draw_trajectories(data, ax, words=True)
    ax.set_xlabel("step", fontsize=9)
    lines = f"{data.evidence}\n{data.title}".split("\n")
    ax.set_title("\n".join(fill(line, _TITLE_WIDTH) for line in lines), fontsize=9, loc="left")
    if legend:
        handles = legend_handles(data.scale, data.assigned, words=False)
        box = ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize=8.5, frameon=False)
        box.set_title("assigned opinion", FontProperties(size=8.5))
    return ax
