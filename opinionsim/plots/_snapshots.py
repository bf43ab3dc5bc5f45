"""A network at several moments, its agents coloured by their opinions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize, to_rgba_array
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from opinionsim.drawing import INK, colour_bar, is_narrow, legend_below, new_panels, opinion_map, opinion_ticks, pt
from opinionsim.errors import SpecError
from opinionsim.opinions import OpinionScale
from opinionsim.plots._inputs import FigureNumbers, drawn_from, has_frames, pick_run
from opinionsim.plots._over_time import Source, Trajectory, TrajectorySet, one_trajectory
from opinionsim.registry import part

#: Most agents in a figure; and most for which the ties of a complete network are drawn.
_MOST_AGENTS, _MOST_COMPLETE = 2000, 12
#: Most agents on panels of the usual size.
_MANY = 400
#: Moments drawn by default, and most that may be named.
_MOMENTS, _MOST_MOMENTS = 4, 12
#: Colours of ties, of ties of negative weight, and of rings of agents without an opinion.
_TIE, _AGAINST, _SILENT = "#A9B3BA", "#D55E00", "#8A8A8A"
#: Points of a ring that shows an assigned opinion.
_RING = 2.2
#: Inches of a panel.
_SIDE = 2.9


@dataclass(frozen=True, eq=False)
class SnapshotData(FigureNumbers):
    """Data of snapshots of a run's network.

    Attributes
    ----------
    frame : DataFrame
        One row per moment and agent: ``step, agent, x, y, value, assigned, evidence``; ``value`` is NaN for an agent
        that was not measured yet; ``assigned`` is the opinion that it was assigned at the start. Places are the same at
        all moments.
    ties : DataFrame
        One row per moment and tie that exists then: ``step, source, target, weight``; where ties are directed, the
        source speaks and the target hears.
    directed : bool
        Whether ties have one direction.
    span : (float, float)
        Range of opinions.
    scale : OpinionScale or None
        The scale; None for numbers of a model.
    evidence : str
        Kind of evidence the run is, in words.
    notes : tuple of str
        Notes on the run, and on ties that are not drawn.
    """

    ties: pd.DataFrame
    directed: bool
    span: tuple[float, float]
    scale: OpinionScale | None


def snapshot_data(
    source: Source,
    steps: Sequence[int] | None = None,
    run: str | int | None = None,
    kind: str | None = None,
    seed: int = 0,
    directed: bool | None = None,
) -> SnapshotData:
    """Return the data of snapshots of a network.

    Parameters
    ----------
    source : Results, Frames with edges, or SimulatedRuns
        Source of the run.
    steps : sequence of int, optional
        Moments to show, at most 12; opinions must be known at each. Default: four, from the first to the last.
    run : str or int, optional
        Identity of a store's run or its position in ``runs``, default the first complete one of the lowest
        replicate; for a simulation the replicate, default 0.
    kind : str, optional
        Kind of text the opinions were coded from; default the first that was measured, in the order of the column
        `texts` of runs.
    seed : int
        Seed of the places of the agents.
    directed : bool, optional
        Whether the ties of a store's run have one direction. By default, ties are directed if any of them leads
        from a larger number to a smaller one, because undirected ties are stored with the smaller number first.

    Returns
    -------
    SnapshotData
        Places come from a spring layout of the ties of all moments; a complete network is a circle.

    Raises
    ------
    SpecError
        If there are more than 2,000 agents, no such run or moment, or the frames have no edges.
    """
    trajectory, drawn = one_trajectory(source, run, kind)
    n = trajectory.values.shape[1]
    if n > _MOST_AGENTS:
        raise SpecError(
            f"snapshots of a network show at most {_MOST_AGENTS} agents; got {n:,}. "
            "Use density, which has no such limit"
        )
    moments = _moments(trajectory, steps)
    lasting, one_way, complete = _ties(source, run, trajectory, directed)
    shown = [lasting[(lasting["since"] <= moment) & ~(lasting["until"] <= moment)] for moment in moments]
    ties = pd.concat([frame.assign(step=moment) for frame, moment in zip(shown, moments, strict=True)])
    places = _layout(n, ties, seed, circle=complete)
    rows = np.searchsorted(trajectory.times, moments)
    held = np.full(n, np.nan) if trajectory.assigned is None else trajectory.assigned
    nodes = pd.DataFrame(
        {
            "step": np.repeat(moments, n),
            "agent": np.tile(np.arange(n), len(moments)),
            "x": np.tile(places[:, 0], len(moments)),
            "y": np.tile(places[:, 1], len(moments)),
            "value": trajectory.values[rows].ravel(),
            "assigned": np.tile(held, len(moments)),
            "evidence": trajectory.evidence,
        }
    )
    hidden = complete and n > _MOST_COMPLETE
    notes = (*drawn.notes, "everybody hears everybody; ties are not drawn") if hidden else drawn.notes
    columns = ["step", "source", "target", "weight"]
    return SnapshotData(
        nodes,
        drawn.evidence,
        notes,
        ties[columns].reset_index(drop=True),
        one_way,
        _span(drawn, trajectory),
        drawn.scale,
    )


def _span(drawn: TrajectorySet, trajectory: Trajectory) -> tuple[float, float]:
    """Range of opinions; for a model without one, the smallest symmetric range that holds all opinions."""
    if np.isfinite(drawn.span).all():
        return drawn.span
    widest = float(np.nanmax(np.abs(trajectory.values), initial=0)) or 1.0
    return -widest, widest


def _moments(trajectory: Trajectory, steps: Sequence[int] | None) -> np.ndarray:
    """Moments to show, increasing."""
    if steps is None:
        return np.unique(trajectory.times[np.linspace(0, len(trajectory.times) - 1, _MOMENTS).round().astype(int)])
    wanted = sorted(set(steps))
    if not 1 <= len(wanted) <= _MOST_MOMENTS:
        raise SpecError(f"steps must name 1 to {_MOST_MOMENTS} moments; got {len(wanted)}")
    unknown = [moment for moment in wanted if moment not in trajectory.times]
    if unknown:
        apart = np.unique(np.diff(trajectory.times))
        every = f", every {apart[0]}" if len(apart) == 1 and apart[0] > 1 else ""
        raise SpecError(
            f"opinions are known from step {trajectory.times[0]} to {trajectory.times[-1]}{every}; got {unknown[0]!r}"
        )
    return np.array(wanted)


def _ties(
    source: Source, run: str | int | None, trajectory: Trajectory, directed: bool | None
) -> tuple[pd.DataFrame, bool, bool]:
    """Ties with the steps they last, whether they are directed, and whether the network is complete."""
    n = trajectory.values.shape[1]
    if trajectory.network is not None:
        pairs, weights = trajectory.network.edges
        one_way, complete = trajectory.network.directed, trajectory.network.complete
        ties = pd.DataFrame(
            {"source": pairs[:, 0], "target": pairs[:, 1], "weight": 1.0 if weights is None else weights}
        )
    else:
        edges = getattr(source, "edges", None)
        if edges is None or not has_frames(source):
            raise SpecError("these frames have no edges; pass Results, or Frames with edges")
        row = pick_run(source, run).runs.iloc[0]
        # Others of a run's cast, such as a moderator, have numbers from n and no opinion to show.
        ties = edges[(edges["run_id"] == row["run_id"]) & (edges["source"] < n) & (edges["target"] < n)]
        complete = ties.empty and row["network"] == "complete"
        one_way = bool((ties["source"] > ties["target"]).any()) if directed is None else directed
    if complete and n <= _MOST_COMPLETE:
        first, second = np.triu_indices(n, 1)
        ties = pd.DataFrame({"source": first, "target": second, "weight": 1.0})
    lasting = {
        "since": ties["since"].to_numpy(float) if "since" in ties else 0.0,
        "until": ties["until"].to_numpy(float, na_value=np.nan) if "until" in ties else np.nan,
    }
    return ties[["source", "target", "weight"]].assign(**lasting), one_way, complete


def _layout(n: int, ties: pd.DataFrame, seed: int, *, circle: bool) -> np.ndarray:
    """Places of agents, (n, 2), within -1 to 1."""
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(range(n))
    graph.add_edges_from(ties[["source", "target"]].drop_duplicates().to_numpy().tolist())
    if circle or n == 1:
        found = nx.circular_layout(graph)
    else:
        found = nx.spring_layout(graph, seed=seed, iterations=200 if n <= _MANY else 60, weight=None)
    places = np.array([found[agent] for agent in range(n)], dtype=float)
    if n > _MANY:  # a few far ones would leave the others no room: beyond the middle half, distances grow as logarithms
        places -= np.median(places, axis=0)
        far = np.hypot(*places.T)[:, None] / max(float(np.median(np.hypot(*places.T))), 1e-9)
        places *= np.arcsinh(far) / np.maximum(far, 1e-9)
    return places / max(float(np.abs(places).max()), 1e-9)


def draw_snapshot(
    nodes: pd.DataFrame, ties: pd.DataFrame, ax: Axes, span: tuple[float, float], *, directed: bool
) -> None:
    """Draw the agents and ties of one moment; colours run over `span`.

    Agents that were not measured yet are hollow: rings in the colour of their assigned opinion, or grey if they have
    none.
    """
    places = nodes[["x", "y"]].to_numpy(float)
    n = len(places)
    room = ax.get_window_extent().width / ax.figure.dpi / 2  # of a panel on a page of its own width, or less
    area = float(np.clip(3200 / max(n, 1), 10 if n <= _MANY else 5, 110)) * min(room, 1) ** 2
    ends = ties[["source", "target"]].to_numpy(int)
    lines = places[ends]
    colours = np.where(ties["weight"].to_numpy(float) < 0, _AGAINST, _TIE)
    width = float(np.clip(60 / max(len(ties), 1), 0.35 if n <= _MANY else 0.15, 1.0))
    if directed and len(ends):
        _draw_arrows(ax, lines, colours, width, np.sqrt(area) / 2)
    else:
        styles = ["--" if colour == _AGAINST else "-" for colour in colours]
        ax.add_collection(
            LineCollection(list(lines), colors=list(colours), linewidths=width, linestyles=styles, zorder=1)
        )
    value = nodes["value"].to_numpy(float)
    silent = np.isnan(value)
    norm = Normalize(*span)
    fill = opinion_map()(norm(np.where(silent, span[0], value)))
    fill[silent] = (1, 1, 1, 1)
    held = nodes["assigned"].to_numpy(float)
    ring = silent & ~np.isnan(held)
    edge = to_rgba_array(np.where(silent, _SILENT, "#33404A"))
    edge[ring] = opinion_map()(norm(held[ring]))
    widths = np.where(ring, _RING, 0.6) * min(np.sqrt(area / 10), 1)
    ax.scatter(places[:, 0], places[:, 1], s=area, c=fill, edgecolors=list(edge), linewidths=list(widths), zorder=2)
    ax.set(xlim=(-1.12, 1.12), ylim=(-1.12, 1.12), xticks=[], yticks=[], aspect="equal")
    ax.spines[:].set_visible(False)


def _draw_arrows(ax: Axes, lines: np.ndarray, colours: np.ndarray, width: float, radius: float) -> None:
    """Draw arrows that end at the rims of agents, whose `radius` is in points."""
    start, way = lines[:, 0], lines[:, 1] - lines[:, 0]
    length = np.maximum(np.hypot(way[:, 0], way[:, 1]), 1e-9)
    rim = radius * 2.24 / (_SIDE * 72)
    kept = np.maximum(1 - 1.4 * rim / length, 0.2)
    way = way * kept[:, None]
    ax.quiver(
        start[:, 0], start[:, 1], way[:, 0], way[:, 1], color=list(colours), angles="xy", scale_units="xy", scale=1,
        units="inches", width=1.1 * width / 72, headwidth=6, headlength=7, headaxislength=6, zorder=1,
    )  # fmt: skip


@part("figure", name="network", numbers=snapshot_data)
@drawn_from(snapshot_data)
def network_snapshots(data: SnapshotData) -> Figure:
    """Draw a run's network at several moments, agents coloured by their opinions.

    Parameters
    ----------
    source, steps, run, kind, seed, directed
        As for :func:`snapshot_data`.

    Returns
    -------
    Figure
        One panel per moment, agents in the same places in all. Red below the middle of the range, grey at it, blue
        above; agents that were not measured yet are hollow, with a ring in the colour of their assigned opinion.
        Arrows lead from speaker to listener; ties of negative weight are orange.

    Raises
    ------
    SpecError
        As for :func:`snapshot_data`.
    """
    moments = dict(list(data.frame.groupby("step")))
    names = [f"step {moment}" for moment in data.frame["step"].unique()]
    columns = len(names) if len(names) <= 4 else -(-len(names) // 2) if len(names) <= 8 else 4
    # Many agents have large panels, of which a narrow page holds two.
    large = len(data.frame) > _MANY * len(names) and (len(names) <= 2 or not is_narrow())
    side = 1.6 * _SIDE if large else _SIDE
    lines = [data.evidence, *data.notes]
    figure, axes = new_panels(names, lines, (side, side), n_columns=columns, square=True)
    for ax, name, (moment, nodes) in zip(axes, names, moments.items(), strict=True):
        draw_snapshot(nodes, data.ties[data.ties["step"] == moment], ax, data.span, directed=data.directed)
        ax.set_title(name, fontsize=pt(9), loc="left")
    colours = ScalarMappable(Normalize(*data.span), opinion_map())
    bar = colour_bar(colours, axes, "opinion", shrink=0.8, pad=0.01, aspect=24)
    if data.scale is not None:
        bar.set_ticks(list(data.scale.points), labels=opinion_ticks(data.scale, words=False))
    handles = _handles(data)
    if handles:
        legend_below(figure, handles)
    return figure


def _handles(data: SnapshotData) -> list[Line2D]:
    """Legend entries for agents that were not measured yet and for ties of negative weight."""
    handles = []
    silent = data.frame["value"].isna()
    held = data.frame["assigned"].notna()
    for rows, label, colour, width in (
        (silent & held, "assigned only, in the colour of the opinion", INK, _RING),
        (silent & ~held, "no opinion yet", _SILENT, 0.6),
    ):
        if rows.any():
            ring = Line2D([], [], linestyle="none", marker="o", markersize=7, label=label)
            ring.set(markerfacecolor="white", markeredgecolor=colour, markeredgewidth=width)
            handles.append(ring)
    if (data.ties["weight"] < 0).any():
        style: Literal["-", "--"] = "-" if data.directed else "--"
        handles.append(Line2D([], [], color=_AGAINST, linestyle=style, label="tie of negative weight"))
    return handles
