"""Opinion of every agent over the steps of one run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from opinionsim import drawing, metrics
from opinionsim.errors import SpecError
from opinionsim.messages import MISSING
from opinionsim.opinions import OpinionScale
from opinionsim.plots import _inputs as inputs
from opinionsim.plots._lines import LineData, draw_lines, line_data
from opinionsim.plots._over_time import Source, one_trajectory
from opinionsim.plots._shares import ShareData, draw_shares, share_data
from opinionsim.registry import part
from opinionsim.store import Mark, marks_of

#: Vertical distance between agents of equal opinion, in scale units (Chuang et al. 2023, figures 4-6; A15).
_JITTER = 0.03
#: Most agents that all have a line; the number of those that have one if there are more; and shares of agents in bands.
_MOST_LINES, _SAMPLE, _BANDS = 40, 12, (0.05, 0.25, 0.5, 0.75, 0.95)
#: Markers of the statuses of turns without an opinion of a whole answer.
_LOST = dict(zip((*MISSING, "skipped"), ("x", "3", "1", "+", ">", "2", "4", "|"), strict=True))
#: The look of those marks.
_MARK: Mapping[str, Any] = {"color": "black", "linestyle": "none", "markersize": 5, "markerfacecolor": "none"}
#: The instrument that reads opinions stated as numbers.
_EXACT = "exact"
#: Widest total jitter, so that large groups stay closer to their own opinion than to the next.
_JITTER_SPAN = 0.7


@dataclass(frozen=True, eq=False)
class TrajectoryData:
    """Data of a trajectory plot of one run of N agents and T steps.

    Attributes
    ----------
    steps : ndarray (T + 1,)
        0 to T.
    values : ndarray (N, T + 1)
        Last measured opinion at each step, NaN before the first.
    measured : ndarray (N, T + 1)
        True where an opinion was measured at this step.
    assigned : ndarray (N,)
        Opinion that each agent was assigned at the start; NaN for none.
    models : tuple of str, length N
        Name of the chat model that plays each agent.
    offsets : ndarray (N,)
        Displacement of each agent's line, which separates equal ratings; sums to 0. All 0 if opinions are exact or lie
        between the points of the scale, because their lines are at their values.
    scale : OpinionScale
        The opinion scale.
    title : str
        Condition, run, instrument, and validation of the instrument.
    instrument : str
        Kind of text the opinions were coded from, and the classifier.
    validation : str
        Validation of the instrument on these texts, in words; empty if there is none.
    evidence : str
        Kind of evidence the run is, in words.
    lost : DataFrame
        One row per turn that was refused, empty, cut off or skipped: ``step, agent, status``. Skipped ones are known
        where there is a turns frame.
    events : tuple of Mark
        Steps at which events of the run begin, and their names.
    withheld : bool
        Whether too few agents were measured at the end for a number for all (:func:`opinionsim.metrics.run_metrics`).
    """

    steps: np.ndarray
    values: np.ndarray
    measured: np.ndarray
    assigned: np.ndarray
    models: tuple[str, ...]
    offsets: np.ndarray
    scale: OpinionScale
    title: str
    instrument: str
    validation: str
    evidence: str
    lost: pd.DataFrame
    events: tuple[Mark, ...] = ()
    withheld: bool = False

    @property
    def drawn(self) -> np.ndarray:
        """Agents that have a line: all, or a sample at equal steps if there are many."""
        n = len(self.values)
        return np.arange(n) if n <= _MOST_LINES else np.linspace(0, n - 1, _SAMPLE).round().astype(int)


def jitter(n_agents: int) -> np.ndarray:
    """Vertical offset of each agent: 0.03 x index, centred, closer for more than 24 agents; shape (n_agents,)."""
    spacing = min(_JITTER, _JITTER_SPAN / max(n_agents - 1, 1))
    return spacing * (np.arange(n_agents) - (n_agents - 1) / 2)


def _offsets(values: np.ndarray, assigned: np.ndarray, scale: OpinionScale, classifier: str) -> np.ndarray:
    """Offsets of lines, (n_agents,): jitter for ratings, whose points stand for intervals; 0 for exact opinions."""
    known = np.concatenate([values.ravel(), assigned])
    rated = classifier != _EXACT and np.isin(known[~np.isnan(known)], scale.values).all()
    return jitter(len(values)) if rated else np.zeros(len(values))


def trajectory_data(
    results: inputs.HasFrames, run: str | int | None = None, kind: str | None = None, scale: OpinionScale | None = None
) -> TrajectoryData:
    """Return the data of a trajectory plot.

    Parameters
    ----------
    results : Results or Frames
        Frames of a store.
    run : str or int, optional
        Identity of a run, or its position in ``results.runs``; default the first complete run of the lowest
        replicate, named in the caption.
    kind : str, optional
        Kind of text the opinions were coded from; default the first that was measured, in the order of the column
        `texts` of runs.
    scale : OpinionScale, optional
        Default: read from the columns of the opinions.

    Returns
    -------
    TrajectoryData
        Arrays over agents and steps.

    Raises
    ------
    SpecError
        If there is no such run or no stance was measured on such texts.
    """
    own = inputs.pick_run(results, run)
    chosen = inputs.pick_kind(kind, own.opinions["kind"], own.runs)
    row = own.runs.iloc[0]
    turns = inputs.acts_of(results)
    frame = metrics.trajectories(own.runs, own.agents, own.opinions, chosen, turns)
    n_agents = int(row["n_agents"])
    by_agent = (n_agents, len(frame) // n_agents)
    replicates = results.runs.loc[results.runs["cell"] == row["cell"], "replicate"].nunique()
    instrument = metrics.name_instrument(chosen, str(row["classifier"]))
    models = own.agents.drop_duplicates("agent").set_index("agent")["model"].reindex(range(n_agents))
    validation = metrics.validation_statement([row["validation"]], chosen)
    told = [
        metrics.describe(row, among=results.runs),
        f"{metrics.provenance(row, replicates)}, {instrument}",
        metrics.played_by([str(row["model"])], [str(row["evidence"])]),
        validation,
        metrics.outdated([row]),
    ]
    values = frame["value"].to_numpy(float).reshape(by_agent)
    assigned = frame["assigned_opinion"].to_numpy(float).reshape(by_agent)[:, 0]
    scale = metrics.scale_of(own.opinions) if scale is None else scale
    return TrajectoryData(
        steps=np.arange(by_agent[1]),
        values=values,
        measured=frame["measured"].to_numpy(bool).reshape(by_agent),
        assigned=assigned,
        models=tuple(models.fillna("model not on record").astype(str)),
        offsets=_offsets(values, assigned, scale, str(row["classifier"])),
        scale=scale,
        title="\n".join(filter(None, told)),
        instrument=instrument,
        validation=validation,
        evidence=metrics.evidence_statement([str(row["evidence"])]),
        lost=_lost(own, turns, chosen),
        withheld=bool(frame["withheld"].iloc[-1]),
        events=marks_of(row.to_dict()),
    )


def _lost(own: inputs.Frames, turns: pd.DataFrame | None, kind: str) -> pd.DataFrame:
    """Turns of a run whose author gave no whole answer, for :class:`TrajectoryData`."""
    row, found = own.runs.iloc[0], [own.opinions]
    if turns is not None:
        mine = (turns["run_id"] == row["run_id"]) & (turns["agent"] < row["n_agents"])
        found.append(turns[mine & (turns["status"] == "skipped")])
    rows = pd.concat([each.loc[each["kind"] == kind, ["step", "agent", "status"]] for each in found])
    return rows[rows["status"].isin(list(_LOST))].astype({"step": int, "agent": int})


def colours_of(models: Iterable[str], color_by: str) -> dict[str, str] | None:
    """Colours of the models if models colour the lines; None if opinions do.

    Raises
    ------
    SpecError
        If `color_by` is neither ``opinion`` nor ``model``, or one model would give all lines one colour.
    """
    if color_by not in ("opinion", "model"):
        raise SpecError(f"color_by must be 'opinion' or 'model'; got {color_by!r}")
    found = drawing.model_colours(models)
    if color_by == "model" and len(found) == 1:
        raise SpecError(f"color_by must be 'opinion' here, because {next(iter(found))} plays all agents; got 'model'")
    return found if color_by == "model" else None


def _opinion_line(data: TrajectoryData, agent: int) -> str:
    """Colour of the opinion an agent was assigned."""
    held = data.assigned[agent]
    return drawing.UNASSIGNED if np.isnan(held) else drawing.opinion_colours(data.scale)[data.scale.nearest(held)]


def draw_trajectories(
    data: TrajectoryData, ax: Axes, *, words: bool, of_models: Mapping[str, str] | None = None
) -> None:
    """Draw the lines of all agents, coloured by assigned opinion or, given the colours `of_models`, by model.

    With `words`, ticks have verbal anchors. If agents are many, a sample is drawn on bands of the quantiles of all.
    """
    if len(data.drawn) < len(data.values):
        bands = pd.DataFrame(data.values).quantile(list(_BANDS), interpolation="nearest")
        low, first, median, third, high = bands.to_numpy()
        for ends, colour in (((low, high), "#E9ECEE"), ((first, third), "#CDD4D9")):
            ax.fill_between(data.steps, *ends, color=colour, linewidth=0, step="post", zorder=0)
        ax.plot(data.steps, median, color="black", linewidth=2, drawstyle="steps-post", zorder=2.5)
    fine = 0.7 if drawing.is_narrow() else 1
    for agent in data.drawn:
        values, offset, held = data.values[agent], data.offsets[agent], data.assigned[agent]
        colour = _opinion_line(data, agent) if of_models is None else of_models[data.models[agent]]
        if not np.isnan(held):
            _draw_assigned(ax, held + offset, values + offset, colour)
        style = drawing.line_style(list(of_models).index(data.models[agent]), plain=True) if of_models else "-"
        (line,) = ax.step(data.steps, values + offset, where="post", color=colour, linestyle=style, alpha=0.9)
        line.set_linewidth(1.4 * fine)
        at = np.flatnonzero(data.measured[agent])
        if at.size:  # an empty line that is not clipped has no extent, which defeats the layout of the figure
            (dots,) = ax.plot(data.steps[at], values[at] + offset, color=colour, linestyle="none", clip_on=False)
            dots.set(marker="o", markersize=2.8 * fine)
    for status, rows in data.lost[data.lost["agent"].isin(data.drawn)].groupby("status"):
        agent, step = rows["agent"].to_numpy(), rows["step"].to_numpy()
        known = np.where(np.isnan(data.values[agent, step]), data.assigned[agent], data.values[agent, step])
        at = np.nan_to_num(known, nan=data.scale.lowest - 0.4) + data.offsets[agent]
        ax.plot(step, at, clip_on=False, zorder=4, marker=_LOST[str(status)], **_MARK)
    ax.set_yticks(data.scale.points, drawing.opinion_ticks(data.scale, words=words))
    ax.set_ylim(data.scale.lowest - 0.5, data.scale.highest + 0.5)
    ax.set_xlim(0, max(data.steps[-1], 1))
    drawing.draw_marks(ax, data.events)
    drawing.time_axis(ax)


def handles_of(drawn: Sequence[TrajectoryData], of_models: Mapping[str, str] | None, *, words: bool) -> list[Artist]:
    """Legend entries for lines, for bands, and for marks of turns without a whole answer, where there are any."""
    assigned = np.concatenate([each.assigned[each.drawn] for each in drawn])
    if of_models is None:
        found = drawing.legend_handles(drawn[0].scale, assigned, words=words)
    else:
        found = drawing.model_handles(of_models, assigned)
    many = max((len(each.values) for each in drawn), default=0)
    if many > _MOST_LINES:
        found.append(Patch(color="#CDD4D9", label=f"middle 50%, 90%, median;\n{_SAMPLE} of {many:,} agents drawn"))
    lost = {each for data in drawn for each in data.lost.loc[data.lost["agent"].isin(data.drawn), "status"]}
    names = {each: MISSING[each][0] if each in MISSING else each for each in _LOST if each in lost}
    return [*found, *(Line2D([], [], marker=_LOST[each], label=name, **_MARK) for each, name in names.items())]


def drawn_as(of_models: Mapping[str, str] | None) -> str:
    """Meaning of lines, dots and rings, in words."""
    by = "opinion that the agent was assigned at the start" if of_models is None else "model that plays the agent"
    return (
        f"Each line is an agent, and its colour shows the {by}. Dots are measurements. Before the first measurement, a "
        "ring and a dotted line show the assigned opinion."
    )


def _draw_assigned(ax: Axes, held: float, values: np.ndarray, colour: str) -> None:
    """Draw a ring at the assigned opinion, and a dotted line to the first measured one if there is one."""
    known = np.flatnonzero(~np.isnan(values))
    wait = [0, known[0], known[0]] if known.size else [0]
    path = [held, held, values[known[0]]] if known.size else [held]
    (line,) = ax.plot(wait, path, color=colour, linestyle=":", linewidth=1, clip_on=False, zorder=3)
    line.set(marker="o", markersize=5.5, markerfacecolor="white", markevery=[0])


@part("figure", name="trajectories")
def trajectories(
    results: Source,
    run: str | int | None = None,
    kind: str | None = None,
    ax: Axes | None = None,
    legend: bool = True,
    color_by: Literal["opinion", "model"] = "opinion",
) -> Axes:
    """Draw the opinions of all agents of one run over time.

    A line of a store's run starts where its agent was first measured; a ring and a dotted line show the opinion
    assigned to it until then. Ratings, which are points of the scale, are separated vertically if they are equal;
    opinions of equations are at their values. A line of a simulation has the colour of the agent's initial opinion:
    red below the middle of the range, grey at it, blue above. Lines of discrete opinions would hide each other, so
    a simulation with discrete opinions is drawn as areas: the share of agents at each opinion (:func:`share_data`).

    Parameters
    ----------
    results : Results, Frames, or SimulatedRuns
        Frames of a store, or a simulation.
    run : str or int, optional
        Identity of a store's run or its position in ``results.runs``, default the first complete run of the
        lowest replicate; for a simulation the replicate, default 0.
    kind : str, optional
        As for :func:`trajectory_data`, for a store.
    ax : Axes, optional
        Where to draw; default axes on a new figure (``ax.figure``).
    legend : bool
        Explain the colours to the right of the axes; continuous opinions of a simulation have a colour bar, and
        only on a new figure.
    color_by : {"opinion", "model"}
        Whether a line of a store's run has the colour of the opinion its agent was assigned, or of the chat model
        that plays it.

    Returns
    -------
    Axes
        The caption states run, instrument and its validation. For a simulation with more than 100 agents, a sample
        is drawn, and the caption says so.

    Raises
    ------
    SpecError
        If there is no such run, no stance was measured on such texts, or `color_by` is not valid.

    Notes
    -----
    Colours and jitter of Chuang et al. 2023, figures 4-6 (A15).
    """
    if not inputs.has_frames(results):
        if kind is not None or color_by != "opinion":
            raise SpecError(
                "kind and color_by choose texts and chat models of a store; agents of a simulation have none"
            )
        own, ax = ax is None, drawing.new_axes(7.2, 3.9) if ax is None else ax
        found: ShareData | LineData
        if one_trajectory(results, run, None)[0].discrete:
            found = share_data(results, run)
            draw_shares(found, ax, legend=legend)
        else:
            found = line_data(results, run)
            lines = draw_lines(found, ax)
            if legend and own:
                drawing.colour_bar(lines, ax, "opinion at the start")
        drawing.set_heading(ax, [found.evidence, found.what, *found.notes])
        return ax
    data = trajectory_data(results, run, kind)
    of_models = colours_of(data.models, color_by)
    ax = drawing.new_axes(8.4, 3.9) if ax is None else ax
    draw_trajectories(data, ax, words=not drawing.is_narrow(), of_models=of_models)
    ax.set_ylabel("opinion", fontsize=drawing.pt(9))
    if legend:
        handles = handles_of([data], of_models, words=False)
        drawing.legend_beside(ax, "line: assigned opinion" if of_models is None else "line: model", handles=handles)
    what = ("opinion of each agent over time in one run", drawn_as(of_models))
    drawing.set_heading(ax, [data.evidence, *what, f"condition: {data.title}"])
    return ax
