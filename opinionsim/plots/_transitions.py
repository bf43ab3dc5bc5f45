"""Matrices of transitions between opinions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from opinionsim.drawing import SHARES, Facets, colour_bar, is_narrow, name_outer, new_panels, pt, write_numbers
from opinionsim.errors import SpecError
from opinionsim.plots._arrangement import facets
from opinionsim.plots._inputs import FigureNumbers, drawn_from
from opinionsim.plots._over_time import Bins, Source, Trajectory, TrajectorySet, bins_of, trajectories_of
from opinionsim.plots._shown import Shown, conditions, over_time
from opinionsim.registry import part
from opinionsim.store import Results

#: Most opinions for which shares are printed into the matrix.
_MOST_PRINTED = 12


@dataclass(frozen=True, eq=False)
class TransitionData(FigureNumbers):
    """Data of a figure of transitions.

    Attributes
    ----------
    frame : DataFrame
        One row per condition, opinion before and opinion after: ``cell, before, after, count, share, n_before,
        evidence``. ``share`` is ``count`` over the ``n_before`` transitions that start at ``before``; NaN if there
        are none. Opinions are points of the scale, or middles of intervals.
    names : dict of str to list of str
        Short names of the opinions of each condition.
    evidence : str
        Kind of evidence the runs are, in words.
    notes : tuple of str
        Settings that all runs share, the meaning of a transition, and the validation of the instruments.
    facets : Facets or None
        Places of the conditions in a grid of two factors; None if they form no grid.
    """

    names: dict[str, list[str]]
    facets: Facets | None = None


def transition_data(
    source: Source,
    kind: str | None = None,
    where: Mapping[str, Any] | None = None,
    by: str | Sequence[str] | None = None,
    bins: int = 8,
    wording: str | None = None,
) -> TransitionData:
    """Return the data of a figure of transitions.

    Parameters
    ----------
    source, kind, where, by, wording
        As for :func:`opinionsim.plots.ribbon_data`.
    bins : int
        Number of intervals of equal width over the range of opinions, if opinions are not points of a scale.

    Returns
    -------
    TransitionData
        A transition in a store leads from one measured opinion of an agent to its next one, however many steps later;
        the assigned opinion does not count. In a simulation it leads from one record to the next, for all agents.
        Transitions of all runs of a condition are counted together.

    Raises
    ------
    SpecError
        If there is nothing to draw, a name is not valid, conditions would be mixed or there is no transition.
    """
    drawn = trajectories_of(source, kind, where, by, wording)
    cells = {name: (runs, bins_of(runs, drawn, bins)) for name, runs in drawn.cells.items()}
    frame = pd.concat([_counts(name, *cell) for name, cell in cells.items()], ignore_index=True)
    if not frame["count"].any():
        raise SpecError("no agent has two consecutive opinions, so there is no transition to draw")
    names = {name: own.names for name, (_, own) in cells.items()}
    return TransitionData(frame, drawn.evidence, (*drawn.notes, _what(drawn)), names, facets(drawn.factors))


def _what(drawn: TrajectorySet) -> str:
    """The meaning of a transition in words."""
    if drawn.scale is not None:
        return "from one measured opinion of an agent to its next"
    gaps = {int(gap) for runs in drawn.cells.values() for gap in np.unique(np.diff(runs[0].times))}
    if len(gaps) != 1:
        return "from one record to the next, including agents without an update"
    gap = gaps.pop()
    after = f"{gap} steps" if gap > 1 else "one step"
    return f"from one record to the next, {after} later, including agents without an update"


def _counts(name: str, runs: Sequence[Trajectory], bins: Bins) -> pd.DataFrame:
    k = len(bins)
    counts = np.zeros(k * k, dtype=np.int64)
    for run in runs:
        before, after = run.values[:-1], run.values[1:]
        kept = run.measured[1:] & ~np.isnan(before) & ~np.isnan(after)
        counts += np.bincount(bins.place(before[kept]) * k + bins.place(after[kept]), minlength=k * k)
    matrix = counts.reshape(k, k)
    n = matrix.sum(axis=1, keepdims=True)
    share = np.divide(matrix, n, out=np.full((k, k), np.nan), where=n > 0)
    return pd.DataFrame(
        {
            "cell": name,
            "before": np.repeat(bins.centres, k),
            "after": np.tile(bins.centres, k),
            "count": counts,
            "share": share.ravel(),
            "n_before": np.repeat(n.ravel(), k),
            "evidence": runs[0].evidence,
        }
    )


def draw_transitions(rows: pd.DataFrame, names: Sequence[str], ax: Axes) -> Any:
    """Draw the matrix of one condition, before upward and after to the right, and return the mesh for a colour bar."""
    k = len(names)
    share = rows["share"].to_numpy(float).reshape(k, k)
    n = rows["n_before"].to_numpy()[::k]
    mesh = ax.pcolormesh(np.ma.masked_invalid(share), cmap=SHARES, vmin=0, vmax=1, edgecolors="white", linewidth=0.6)
    ax.set_facecolor("#EFEFEF")
    ax.set_aspect("equal")
    ticks = np.arange(k) + 0.5
    size = 6.5 if k > 7 or is_narrow() else 8
    counted = [f"{own} ({count:,})" for own, count in zip(names, n, strict=True)]
    ax.set_xticks(ticks, names, fontsize=pt(size), rotation=0 if max(map(len, names)) <= 4 else 60)
    ax.set_yticks(ticks, counted, fontsize=pt(size))
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    if k <= _MOST_PRINTED:
        write_numbers(mesh, share, _printed, (ticks, ticks), size)
    return mesh


def _printed(share: float) -> str:
    """A share in few characters."""
    return f"{share:.2f}".removeprefix("0") if 0 < share < 1 else f"{share:.0f}"


def _shown(results: Results) -> Iterator[Shown]:
    if over_time(results):
        yield Shown("transitions", settings={"by": conditions(results)})


@part("figure", name="transitions", numbers=transition_data, shown=_shown)
@drawn_from(transition_data)
def transition_matrix(data: TransitionData) -> Figure:
    """Draw the share of each next opinion given the opinion before, one panel per condition.

    Parameters
    ----------
    source, kind, where, by, bins, wording
        As for :func:`transition_data`.

    Returns
    -------
    Figure
        Conditions of two factors are rows and columns. Each row of a matrix sums to 1 and is labelled with its number
        of transitions; rows without any are grey.

    Raises
    ------
    SpecError
        As for :func:`transition_data`.
    """
    cells = dict(list(data.frame.groupby("cell", sort=False)))
    side = max(2.3, 0.38 * max(map(len, data.names.values())))
    # Long names of opinions stand upright, and the name of the axis below them.
    upright = 0.06 * max(0, max(len(name) for names in data.names.values() for name in names) - 4)
    what = "Share of each next opinion among the transitions from an opinion. n counts them; rows sum to 1."
    lines, size = [data.evidence, what, *data.notes], (side + 1.3, side + 1.1 + upright)
    figure, axes = new_panels([str(name) for name in cells], lines, size, data.facets, square=True)
    for ax, (name, rows) in zip(axes, cells.items(), strict=True):
        mesh = draw_transitions(rows, data.names[str(name)], ax)
        name_outer(ax, axes, "next opinion", "opinion before (n)")
    colour_bar(mesh, axes, "share of transitions", shrink=0.85, pad=0.02, aspect=26)
    return figure
