"""Opinions before and after an interaction, by participant and by speaking position."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, PercentFormatter

from opinionsim import drawing
from opinionsim.errors import SpecError
from opinionsim.metrics import LEAST_RUNS, by_participants, run_band, say_band
from opinionsim.opinions import OpinionScale
from opinionsim.plots._inputs import FigureNumbers, HasFrames, acts_of, drawn_from, has_frames
from opinionsim.plots._over_time import Trajectory, trajectories_of
from opinionsim.plots._shown import Shown
from opinionsim.registry import part
from opinionsim.schedules import PROBE, SELF_REPORT
from opinionsim.store import Results

#: Kinds of text off the record, in the order in which they are looked for.
_OFF_RECORD = (PROBE.kind, SELF_REPORT.kind)
#: What a specification needs for this figure.
_ASK = "set measurement.probe: {before: 1, after: 1}, with probe among measurement.texts"
#: Names of the vertical axis of the second view.
_CHANGES = {"distance": "distance moved", "signed": "change of opinion"}
#: Millimetres of an inch, of a pair of panels at least, and of its height.
_INCH, _PAIR, _HEIGHT = 25.4, 78.0, 34.0
#: Place of the mean beside shares of participants, whose axis ends at 1.
_MEAN_AT = 0.93
#: Least and most opinions that a panel tells apart, and how many it has where the scale has fewer or more points.
_POINTS = (5, 11, 9)
#: Most of them that are named.
_NAMED = 6
#: Square points of a dot for all participants at a position; most positions apart, and groups of more.
_DOT, _MOST_POSITIONS, _GROUPS = 48.0, 40, 20


@dataclass(frozen=True, eq=False)
class BeforeAfterData(FigureNumbers):
    """Data of a figure of opinions before and after.

    Attributes
    ----------
    frame : DataFrame
        One row per condition, run and participant: ``cell, run_id, agent, position, before, after, change, evidence``.
        ``position`` is the place of a participant in the order of first turns on the record, from 1. It is NaN if
        the participant has no such turn, or if some take a second turn before others take their first, as in dyads.
        Opinions that were not measured are NaN.
    means : DataFrame
        One row per condition: ``cell, n_runs, n_both, n_participants``, ``before``, ``after`` and ``change``, means
        over runs of the mean of the ``n_both`` participants with both opinions, each with the ends of its interval as
        in ``before_low``, ``before_high``, NaN for fewer than eight runs. Runs of one block count once.
    by_position : DataFrame
        One row per condition and position: ``cell, position, mean, low, high, n_runs``, the change over runs. More
        than 40 positions are merged into at most 20 groups, and ``position`` is the middle of a group.
    controls : tuple of str
        Conditions in whose runs participants speak but read no messages except their own.
    change : {"distance", "signed"}
        Whether ``change`` is the distance between before and after, or after minus before.
    band : str
        Meaning of the intervals, in words; empty where no condition has two runs.
    scale : OpinionScale
        The opinion scale.
    evidence : str
        Kind of evidence the runs are, in words.
    notes : tuple of str
        Settings that all runs share, the validation of the instruments, and what is left out.
    """

    means: pd.DataFrame
    by_position: pd.DataFrame
    controls: tuple[str, ...]
    change: str
    band: str
    scale: OpinionScale


def before_after_data(
    results: HasFrames,
    kind: str | None = None,
    where: Mapping[str, Any] | None = None,
    by: str | Sequence[str] | None = None,
    change: Literal["distance", "signed"] = "distance",
    level: float = 0.95,
    wording: str | None = None,
) -> BeforeAfterData:
    """Return the data of a figure of opinions before and after.

    Parameters
    ----------
    results : Results or Frames with turns
        Frames of a store; only complete runs and their participants count.
    kind : str, optional
        Off-record texts that opinions are coded from: ``probe`` or ``self-report``. Default: the first of
        the two that was measured.
    where, by, wording
        As for :func:`opinionsim.plots.ribbon_data`.
    change : {"distance", "signed"}
        Distance between the opinions before and after, or after minus before.
    level : float
        Confidence level of the intervals.

    Returns
    -------
    BeforeAfterData
        The opinion before is the last one measured at step 0; the opinion after is the last one measured at the last
        step.

    Raises
    ------
    SpecError
        If there is nothing to draw, a name is not valid, conditions would be mixed, the frames have no turns, or no
        participant has an opinion before and one after.
    """
    if change not in _CHANGES:
        raise SpecError(f"change must be 'distance' or 'signed'; got {change!r}")
    turns = acts_of(results)
    if not has_frames(results) or turns is None:
        raise SpecError("opinions before and after are drawn from Results, or Frames with turns")
    say_band("mean", level)
    drawn = trajectories_of(results, _pick(results, kind), where, by, wording)
    blocks = {run.run_id: run.block for runs in drawn.cells.values() for run in runs}
    on_record = turns[turns["run_id"].isin(set(blocks)) & ~turns["kind"].isin(_OFF_RECORD)]
    on_record = on_record[by_participants(on_record, results.runs)]
    taken = on_record.assign(turn=on_record.groupby("run_id")["turn"].rank())
    order = taken.groupby(["run_id", "agent"])["turn"].min()
    frame = pd.concat([_rows(run, order, change) for runs in drawn.cells.values() for run in runs], ignore_index=True)
    in_turn = order.groupby("run_id").agg(lambda first: first.max() == len(first)).astype(bool)
    mixed = frame.loc[frame["run_id"].isin(in_turn.index[~in_turn]), "cell"]
    frame.loc[frame["cell"].isin(mixed), "position"] = np.nan
    both = frame["change"].notna()
    if not both.any():
        raise SpecError(f"no participant has a measured opinion before and after; {_ASK}")
    alone = set(on_record["run_id"]) - _readers(on_record, turns)
    controls = [name for name, runs in drawn.cells.items() if {run.run_id for run in runs} <= alone]
    names = [*(name for name in drawn.cells if name not in controls), *controls]
    left_out = [f"{(~both).sum()} of {len(both)} participants without both opinions left out"] if not both.all() else []
    by_cell, scale = dict(list(frame.groupby("cell", sort=False))), drawn.scale or OpinionScale()
    means = pd.DataFrame([_mean(name, by_cell[name], level, scale, change, blocks) for name in names])
    places = [_by_position(name, _grouped(by_cell[name]), level, change, scale, blocks) for name in names]
    return BeforeAfterData(
        pd.concat([by_cell[name] for name in names], ignore_index=True),
        drawn.evidence,
        (*drawn.notes, *left_out),
        means,
        pd.concat(places, ignore_index=True),
        tuple(controls),
        change,
        say_band("mean", level, means["n_runs"], "small diamonds"),
        scale,
    )


def _pick(results: HasFrames, kind: str | None) -> str:
    """The kind of off-record texts to draw."""
    if kind is not None and kind not in _OFF_RECORD:
        raise SpecError(f"kind must be {' or '.join(map(repr, _OFF_RECORD))}, which are asked before; got {kind!r}")
    present = [name for name in _OFF_RECORD if name in set(results.opinions["kind"])]
    if not (kind or present):
        raise SpecError(f"no participant was asked off the record; {_ASK}")
    return kind or present[0]


def _readers(on_record: pd.DataFrame, turns: pd.DataFrame) -> set[str]:
    """Runs in which a participant is to read anything but messages of its own."""
    read = on_record[["run_id", "agent", "reads"]].explode("reads").dropna(subset="reads")
    author = turns.set_index(["run_id", "turn"])["agent"].to_dict()
    pairs = zip(read["run_id"], read["reads"], read["agent"], strict=True)
    return {run_id for run_id, ref, agent in pairs if author.get((run_id, ref)) != agent}


def _rows(run: Trajectory, order: pd.Series[float], change: str) -> pd.DataFrame:
    """The participants of a run."""
    agents = np.arange(run.values.shape[1])
    # A run of no steps has no opinion after.
    after = np.where(run.measured[-1] & (len(run.times) > 1), run.values[-1], np.nan)
    moved = after - run.values[0]
    return pd.DataFrame(
        {
            "cell": run.cell,
            "run_id": run.run_id,
            "agent": agents,
            "position": order.reindex(pd.MultiIndex.from_product([[run.run_id], agents])).to_numpy(float),
            "before": run.values[0],
            "after": after,
            "change": np.abs(moved) if change == "distance" else moved,
            "evidence": run.evidence,
        }
    )


def _limits(change: str, scale: OpinionScale) -> tuple[float, float]:
    """What a change can be."""
    width = float(scale.highest - scale.lowest)
    return (0.0 if change == "distance" else -width, width)


def _mean(
    name: str, rows: pd.DataFrame, level: float, scale: OpinionScale, change: str, blocks: Mapping[str, str]
) -> dict[str, Any]:
    """Means of a condition over its runs, which belong to `blocks`."""
    both = rows.dropna(subset="change")
    columns = ["before", "after", "change"]
    by_run = both.groupby("run_id")[columns].mean()
    counts = {"n_runs": len(by_run), "n_both": len(both), "n_participants": len(rows)}
    if by_run.empty:
        return {"cell": name, **counts}
    on_scale = (scale.lowest, scale.highest)
    limits = np.transpose([on_scale, on_scale, _limits(change, scale)])
    *found, n = run_band(by_run.to_numpy(), "mean", level, by_run.index.map(blocks), (limits[0], limits[1]))
    named = [f"{each}{end}" for end in ("", "_low", "_high") for each in columns]
    return {"cell": name, **counts, "n_runs": n.max(), **dict(zip(named, np.ravel(found), strict=True))}


def _grouped(rows: pd.DataFrame) -> pd.DataFrame:
    """Participants with the middles of groups of positions where there are many."""
    most = rows["position"].max()
    width = -(-most // _GROUPS) if most > _MOST_POSITIONS else 1
    return rows.assign(position=(rows["position"] - 1) // width * width + (width + 1) / 2)


def _by_position(
    name: str, rows: pd.DataFrame, level: float, change: str, scale: OpinionScale, blocks: Mapping[str, str]
) -> pd.DataFrame:
    """Change at each position of a condition, over its runs, which belong to `blocks`."""
    table = rows.dropna(subset="position").pivot_table("change", "run_id", "position", dropna=False)
    mean, low, high, n = run_band(table.to_numpy(float), "mean", level, table.index.map(blocks), _limits(change, scale))
    columns = {"position": table.columns.to_numpy(), "mean": mean, "low": low, "high": high, "n_runs": n}
    return pd.DataFrame({"cell": name, **columns})


def _near(values: Any, scale: OpinionScale) -> tuple[np.ndarray, np.ndarray]:
    """The nearest of the opinions that a panel tells apart for each value, and all of these opinions."""
    few, many, usual = _POINTS
    points = scale.values if few <= len(scale.values) <= many else np.linspace(scale.lowest, scale.highest, usual)
    return points[np.abs(np.subtract.outer(np.asarray(values, dtype=float), points)).argmin(axis=-1)], points


def draw_before_after(rows: pd.DataFrame, mean: pd.Series[Any], scale: OpinionScale, room: float, ax: Axes) -> None:
    """Draw the participants of one condition as discs by opinion before and after, and their means.

    The area of a disc is the share of participants with these opinions; `room` is the side of the panel in points.
    """
    colours, both = drawing.opinion_colours(scale), rows.dropna(subset="change")
    near = {name: _near(both[name], scale)[0] for name in ("before", "after")}
    counts = pd.DataFrame(near).value_counts().rename("n").reset_index()
    dots = [colours[scale.nearest(value)] for value in counts["before"]]
    # Not even the disc of a half of all reaches the middle of another.
    area = 2 * (room / len(_near([], scale)[1])) ** 2
    ax.axline((scale.neutral, scale.neutral), slope=1, **_SAME)
    ax.scatter(counts["before"], counts["after"], area * counts["n"] / len(both), dots, linewidths=0, zorder=2)
    if mean["n_runs"]:
        down, up = ([mean[name] - mean[f"{name}_low"], mean[f"{name}_high"] - mean[name]] for name in near)
        ax.errorbar([mean["before"]], [mean["after"]], np.array([up]).T, np.array([down]).T, **_MEAN)
    if 1 < mean["n_runs"] < LEAST_RUNS:
        own = both.groupby("run_id")[["before", "after"]].mean()
        ax.plot(own["before"], own["after"], **{**_MEAN, "markersize": 2, "alpha": 0.5})
    named = scale.points[:: -(-len(scale.points) // _NAMED)]
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks(named, list(map(drawing.point_name, named)))
    limits = np.array([scale.lowest, scale.highest]) + np.array([-0.12, 0.12]) * (scale.highest - scale.lowest)
    ax.set(xlim=limits, ylim=limits)
    _finish(ax)


#: The look of the line of the control.
_CONTROL: Mapping[str, Any] = {"linestyle": "--", "linewidth": 1.1}
#: The look of the line of equal opinions before and after.
_SAME: Mapping[str, Any] = {"linestyle": ":", "linewidth": 1.0, "color": drawing.INK, "zorder": 1}
#: The look of a mean and its interval.
_MEAN: Mapping[str, Any] = {"color": "black", "marker": "D", "markersize": 3.5, "linewidth": 1.2, "linestyle": "none"}


def draw_positions(rows: pd.DataFrame, means: pd.DataFrame, control: float, ax: Axes) -> None:
    """Draw the change of one condition's participants by position, the means, and a line at the control's mean."""
    dots = _grouped(rows.dropna(subset="change")).groupby(["position", "change"]).size().rename("n").reset_index()
    share = dots["n"] / dots.groupby("position")["n"].transform("sum")
    ax.scatter(dots["position"], dots["change"], _DOT * share, drawing.INK, alpha=0.35, linewidths=0)
    several = means.dropna(subset="mean")
    ends = [several["mean"] - several["low"], several["high"] - several["mean"]]
    ax.errorbar(several["position"], several["mean"], ends, **_MEAN)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, min_n_ticks=1))
    _finish(ax, control)


def draw_changes(rows: pd.DataFrame, mean: pd.Series[Any], scale: OpinionScale, control: float, ax: Axes) -> None:
    """Draw how many participants of one condition changed by how much, their mean, and the control's mean."""
    step = float(np.diff(_near([], scale)[1])[0])
    shares = (rows["change"].dropna() / step).round().value_counts(normalize=True)
    ax.barh(shares.index * step, shares, 0.8 * step, color=drawing.BAR)
    if mean["n_runs"]:
        ends = [[mean["change"] - mean["change_low"]], [mean["change_high"] - mean["change"]]]
        ax.errorbar([_MEAN_AT], [mean["change"]], ends, **_MEAN)
    if 1 < mean["n_runs"] < LEAST_RUNS:
        own = rows.groupby("run_id")["change"].mean()
        ax.plot([_MEAN_AT] * len(own), own, **{**_MEAN, "markersize": 2, "alpha": 0.5})
    ax.set_xlim(0, 1)
    ax.xaxis.set_major_formatter(PercentFormatter(1))
    _finish(ax, control)


def _finish(ax: Axes, control: float = np.nan) -> None:
    """Draw the mean of the control and thin lines at the ticks, and give a small panel small numbers."""
    if not np.isnan(control):
        ax.axhline(control, color=drawing.INK, **_CONTROL)
    ax.grid(axis="y", color="#E4E4E4", linewidth=0.8)
    drawing.tidy(ax)
    ax.tick_params(labelsize=drawing.pt(7.5))


def _shown(results: Results) -> Iterator[Shown]:
    yield Shown("before-after", "Opinions of each participant before and after, asked off the record.")


@part("figure", name="before-after", numbers=before_after_data, shown=_shown)
@drawn_from(before_after_data)
def before_after(data: BeforeAfterData) -> Figure:
    """Draw opinions before and after an interaction, and how much they changed, two panels a condition.

    Parameters
    ----------
    results, kind, where, by, change, level, wording
        As for :func:`before_after_data`.

    Returns
    -------
    Figure
        On the left, the area of a disc is the share of participants with an opinion before (across) and after (up),
        each rounded to the nearest of 5 to 11 opinions. On the right, bars show the shares of participants by change.
        If all participants speak in turn, dots show participants by speaking position instead, and larger dots stand
        for several participants. Diamonds are means over runs, and a dashed line is the mean of the controls, in which
        nobody reads others. Controls come last. The title states the evidence.

    Raises
    ------
    SpecError
        As for :func:`before_after_data`.
    """
    names = data.means["cell"].tolist()
    captions = [_caption(data, name) for name in names]
    n_columns = max(min(int(drawing.page(174.0 / _INCH) * _INCH // _PAIR), len(names)), 1)
    size = ((174.0 / _INCH - 0.8) / 2, _HEIGHT / _INCH + 0.2)
    room = 72 * min(_HEIGHT / _INCH - 0.3, 0.33 * drawing.page(174.0 / _INCH) / n_columns)
    figure, pairs = drawing.new_panels(captions, [data.evidence, *data.notes], size, n_columns=n_columns)
    moves, beyond = data.frame["change"], 0.5 * float(np.diff(_near([], data.scale)[1])[0])
    control = data.means.loc[data.means["cell"].isin(data.controls), "change"].mean()
    titles = [pair.get_title(loc="left") or captions[place] for place, pair in enumerate(pairs)]
    # Panels of equal height: titles of fewer lines begin with empty ones, and all of a row have a name below or none.
    deepest = max(title.count("\n") for title in titles)
    for place, (name, pair) in enumerate(zip(names, pairs, strict=True)):
        spec: Any = pair.get_subplotspec()
        left, right = (figure.add_subplot(spot) for spot in spec.subgridspec(1, 2, width_ratios=[1, 1.3]))
        left.set_title(
            "\n" * (deepest - titles[place].count("\n")) + titles[place], fontsize=drawing.pt(8.5), loc="left"
        )
        pair.remove()
        rows = data.frame[data.frame["cell"] == name]
        mean, placed = data.means.iloc[place], data.by_position[data.by_position["cell"] == name]
        draw_before_after(rows, mean, data.scale, room, left)
        if len(placed):
            draw_positions(rows, placed, control, right)
        else:
            draw_changes(rows, mean, data.scale, control, right)
        right.set_ylim(min(moves.min(), 0) - beyond, moves.max() + beyond)
        right.set_ylabel(_CHANGES[data.change], fontsize=drawing.pt(8))
        if not place % n_columns:
            left.set_ylabel("opinion after", fontsize=drawing.pt(8))
        if (place // n_columns + 2) * n_columns > len(names):
            left.set_xlabel("opinion before", fontsize=drawing.pt(8))
            right.set_xlabel("speaking position" if len(placed) else "participants", fontsize=drawing.pt(8))
    drawing.legend_below(figure, _legend(data, control))
    return figure


def _caption(data: BeforeAfterData, name: str) -> str:
    """Name of a condition, with its number of runs, and whether it is a control."""
    n = int(data.means.loc[data.means["cell"] == name, "n_runs"].iloc[0])
    runs = f"{n} run{'' if n == 1 else 's'}"
    return f"{name} ({runs}{', control' if name in data.controls else ''})"


def _legend(data: BeforeAfterData, control: float) -> list[Line2D]:
    """Entries for the marks."""
    said = {
        "participants: area is their share, colour the opinion before": {**_MEAN, "marker": "o", "color": drawing.BAR},
        "no change": _SAME,
        "; ".join(["mean over runs", *filter(None, [data.band.replace("band: ", "bar: ")])]): _MEAN,
    }
    if not np.isnan(control):
        said["mean of the control, where nobody reads others"] = {**_CONTROL, "color": drawing.INK}
    return [Line2D([], [], **{**look, "label": text}) for text, look in said.items()]
