"""Opinion of every agent over the steps of a simulation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize

from opinionsim.drawing import opinion_map, pt, time_axis
from opinionsim.errors import whole_number
from opinionsim.plots._inputs import FigureNumbers
from opinionsim.plots._over_time import Source, one_trajectory

#: Most agents drawn by default.
_MOST_LINES = 100


@dataclass(frozen=True, eq=False)
class LineData(FigureNumbers):
    """Data of the lines of agents of a simulation.

    Attributes
    ----------
    frame : DataFrame
        One row an agent that is drawn and a moment: ``run_id, cell, agent, step, value, evidence``.
    span : (float, float)
        Range of opinions.
    evidence : str
        Kind of evidence the run is, in words.
    notes : tuple of str
        Model, parameters, replicate, and the number of agents drawn if not all are.
    """

    span: tuple[float, float]
    what = "Opinion of each agent over time. The colour of a line shows the agent's opinion at the start."


def line_data(
    source: Source,
    run: str | int | None = None,
    most: int = _MOST_LINES,
) -> LineData:
    """Return the data of the lines of agents of one run.

    Parameters
    ----------
    source : SimulatedRuns, or a sequence or mapping with one
        The simulation.
    run : int, optional
        The replicate; default 0.
    most : int
        Maximum number of agents drawn. If there are more, agents are chosen at equal steps in the order of initial
        opinions.

    Returns
    -------
    LineData
        Agents in the order of their numbers.

    Raises
    ------
    SpecError
        If there is no such replicate, several simulations are given, or `most` is not a whole number >= 1.
    """
    whole_number("most", most, 1)
    trajectory, drawn = one_trajectory(source, run, None)
    n = trajectory.values.shape[1]
    agents, notes = np.arange(n), drawn.notes
    if n > most:
        order = np.argsort(trajectory.values[0], kind="stable")
        agents = np.sort(order[np.linspace(0, n - 1, most).round().astype(int)])
        notes = (*notes, f"{most} of {n:,} agents drawn, evenly over initial opinions")
    frame = pd.DataFrame(
        {
            "run_id": trajectory.run_id,
            "cell": trajectory.cell,
            "agent": np.repeat(agents, len(trajectory.times)),
            "step": np.tile(trajectory.times, len(agents)),
            "value": trajectory.values[:, agents].T.ravel(),
            "evidence": trajectory.evidence,
        }
    )
    return LineData(frame, drawn.evidence, notes, drawn.span)


def draw_lines(data: LineData, ax: Axes) -> LineCollection:
    """Draw a line for each agent, coloured by its initial opinion, and return the lines; many are thinner."""
    times = data.frame["step"].unique().astype(float)
    values = data.frame["value"].to_numpy(float).reshape(-1, len(times))
    low, high = data.span
    if not np.isfinite([low, high]).all():
        widest = float(np.abs(values).max()) or 1.0
        low, high = -widest, widest
    paths = np.stack([np.broadcast_to(times, values.shape), values], axis=2)
    many = len(values)
    width, alpha = float(np.clip(40 / many, 0.5, 1.4)), float(np.clip(60 / many, 0.35, 0.9))
    lines = LineCollection(list(paths), cmap=opinion_map(), norm=Normalize(low, high), linewidths=width, alpha=alpha)
    lines.set_array(values[:, 0])
    ax.add_collection(lines)
    margin = 0.03 * (high - low)
    ax.set(xlim=(times[0], max(times[-1], times[0] + 1)), ylim=(low - margin, high + margin))
    ax.set_ylabel("opinion", fontsize=pt(9))
    time_axis(ax)
    return lines
