"""The primary outcome of a study by condition, its contrasts, and how agents changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from opinionsim.analysis import Outcome, outcome_data, p_text
from opinionsim.drawing import BAR, INK, heading, is_narrow, legend_below, line_height, new_figure, page, pt, tidy
from opinionsim.foundation.templates import sentences
from opinionsim.metrics import WITHOUT_FINDING, axis_name
from opinionsim.plots._inputs import drawn_from
from opinionsim.plots._shown import Shown
from opinionsim.registry import part
from opinionsim.store import Results

#: Most conditions whose change has a panel below theirs; that of more is beside them, in the same rows.
_FEW = 8
#: Inches about the rows of a panel, and the share of a panel's width that names may take.
_ABOUT, _NAMES = 0.62, 0.4
#: Lines that a stamp takes.
_STAMP = 1.4
#: What outcomes are called.
_WORDS: Mapping[str, str] = {"bias": "mean opinion", "diversity": "diversity of opinions"}
_MEAN: Mapping[str, Any] = {"color": "black", "marker": "o", "markersize": 4, "linestyle": "none", "linewidth": 1.1}
_UNIT: Mapping[str, Any] = {"color": INK, "marker": "o", "markersize": 2.6, "linestyle": "none", "alpha": 0.4}
_BOUNDS: Mapping[str, Any] = {"color": BAR, "linewidth": 3, "solid_capstyle": "butt"}
_BAND = "#E3E7EA"


class _Rows(NamedTuple):
    """Rows of a panel: their middles and names, the headings by their middles, and the height in lines of text."""

    at: np.ndarray
    names: list[str]
    heads: dict[float, str]
    height: float


def _rows(names: Sequence[str], width: float, heads: Sequence[str] = ()) -> _Rows:
    """Rows with names broken to a width in inches, each heading above the first row that has it."""
    at, broken, above, down = [], [], dict[float, str](), 0.0
    least = 1.45 if len(names) <= _FEW else 1.1
    for place, name in enumerate(names):
        if heads and heads[place] not in heads[:place]:
            head = heading([heads[place]], 1.5 * width)
            lines = 1.25 * (head.count("\n") + 1)
            above[down + lines / 2] = head
            down += lines
        broken.append(heading([name], width))
        lines = max(1.15 * (broken[-1].count("\n") + 1), least)
        at.append(down + lines / 2)
        down += lines
    return _Rows(np.array(at), broken, above, down + 0.2)


def _named(data: Outcome, width: float) -> tuple[_Rows, str]:
    """The rows of the conditions, and the name of what varies in them; other factors make headings."""
    frame = data.conditions
    axes = [*data.axes, *(["evidence"] if frame.duplicated([*data.axes, "kind"]).any() else [])]
    words = [["" if pd.isna(level) else str(data.titles.get(level, level)) for level in frame[axis]] for axis in axes]
    names = [axis_name(axis) for axis in axes]
    full = [", ".join(filter(None, levels)) or "all runs" for levels in zip(*words, strict=True)] or ["all runs"]
    heads = [", ".join(levels) for levels in zip(*words[:-1], strict=True)]
    if len(axes) < 2 or len({*heads}) == len(heads) or any("" in each for each in words):
        return _rows(full, width), ", ".join(names)
    if len(axes) == 2:
        return _rows(words[-1], width, [f"{names[0]}: {head}" for head in heads]), names[1]
    return _rows(words[-1], width, heads), f"{names[-1]} (in bold: {', '.join(names[:-1])})"


@dataclass(frozen=True, eq=False)
class _Panel:
    """What stands in a panel: rows, a text at the right of each, the name of its axis, evidence, and the draw step."""

    rows: _Rows
    right: list[str]
    axis: str
    evidence: list[str]
    draw: Callable[[Axes], None]
    named: bool = True

    @property
    def stamp(self) -> str:
        """The note inside the frame that authors are or may be scripted; empty if none is."""
        if {*self.evidence} == {"scripted"}:
            return "SCRIPTED STAND-IN"
        partly = "PARTLY SCRIPTED" if "scripted" in self.evidence else "MAYBE SCRIPTED"
        return partly if {*self.evidence} & {*WITHOUT_FINDING} else ""

    @property
    def height(self) -> float:
        """Inches of the panel."""
        return _ABOUT + line_height(0.9 * (self.rows.height + _STAMP * bool(self.stamp)))

    def finish(self, ax: Axes, width: float) -> None:
        """Draw, name rows and axis, and write the notes on each row at the right."""
        self.draw(ax)
        ax.set_ylim(self.rows.height, -_STAMP * bool(self.stamp))
        texts: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "va": "center", "fontsize": pt(7)}
        texts |= {"fontweight": "bold", "bbox": {"facecolor": "white", "edgecolor": "none", "pad": 1}}
        ax.text(0.5, -_STAMP / 2, self.stamp, color=INK, ha="center", **texts)
        for at, head in self.rows.heads.items() if self.named else ():
            ax.text(0.02, at, head, **texts)
        tidy(ax)
        ax.set_yticks(self.rows.at, self.rows.names if self.named else [])
        ax.tick_params(labelsize=pt(7.5))
        ax.tick_params(axis="y", length=0)
        ax.margins(x=0.08)
        ax.xaxis.set_major_locator(MaxNLocator(nbins=4 if is_narrow() else 5, steps=[1, 2, 5, 10], min_n_ticks=2))
        ax.grid(axis="x", color="#E4E4E4", linewidth=0.8)
        ax.set_xlabel(heading([self.axis], width), fontsize=pt(8))
        beside = ax.secondary_yaxis("right")
        beside.set_yticks(self.rows.at, self.right or [""] * len(self.rows.at), fontsize=pt(7))
        beside.tick_params(length=0)
        beside.spines[:].set_visible(False)


def _errorbar(ax: Axes, frame: pd.DataFrame, value: str, at: np.ndarray) -> None:
    """Draw means with their intervals, where they have any."""
    ends = frame[[f"{value}_ci_low", f"{value}_ci_high"]].sub(frame[value], axis=0).abs().to_numpy().T
    ax.errorbar(frame[value], at, xerr=ends, **_MEAN)


def draw_conditions(data: Outcome, rows: _Rows, ax: Axes) -> None:
    """Draw the outcome of each condition as a point with its interval, and its units as faint dots."""
    frame, own = data.conditions, list(dict.fromkeys([*data.axes, "evidence"]))
    units = data.units.merge(frame[own].assign(row=range(len(frame))), on=own)
    if len(units) > len(frame):
        ax.plot(units[data.measure], rows.at[units["row"]] + 0.32, **_UNIT)
    _errorbar(ax, frame, data.measure, rows.at)
    look: dict[str, Any] = {"ha": "center", "va": "center", "color": INK, "fontsize": pt(7)}
    for at in rows.at[frame[data.measure].isna()]:
        ax.text(0.5, at, "withheld", transform=ax.get_yaxis_transform(), **look)


def draw_contrasts(frame: pd.DataFrame, rows: _Rows, ax: Axes) -> None:
    """Draw differences with their intervals, on a band as wide as the smallest effect of interest."""
    for at, smallest in zip(rows.at, frame["smallest"].astype(float), strict=True):
        if smallest > 0:
            ax.fill_betweenx([at - 0.65, at + 0.65], -smallest, smallest, color=_BAND, linewidth=0, zorder=0)
    ax.axvline(0, color=INK, linestyle="--", linewidth=0.9)
    _errorbar(ax, frame, "difference", rows.at)


def draw_change(frame: pd.DataFrame, rows: _Rows, ax: Axes) -> None:
    """Draw the change of agents with an opinion at both ends, on a bar that shows what it could be for all agents."""
    lacking = (frame["n_not_both"] > 0).to_numpy()
    ax.plot(frame.loc[lacking, ["change_low", "change_high"]].T, np.tile(rows.at[lacking], (2, 1)), **_BOUNDS)
    ax.axvline(0, color=INK, linestyle="--", linewidth=0.9)
    ax.plot(frame["change"].where(frame["n_both"] > 0), rows.at, **_MEAN)


def _contrasts(data: Outcome, width: float) -> Iterator[_Panel]:
    """A panel of contrasts for each quantity that they are of."""
    for quantity in dict.fromkeys(effect.contrast.quantity for effect in data.effects):
        own = data.contrasts[[effect.contrast.quantity == quantity for effect in data.effects]]
        several = data.contrasts["role"].nunique() > 1
        told = own["contrast"] + (" (" + own["role"] + ")").where((own["role"] == "exploratory") | several, "")
        rows, found = _rows(told.tolist(), width), [_verdict(row) for row in own.to_dict("records")]
        drawn = partial(draw_contrasts, own, rows)
        yield _Panel(rows, found, f"difference in {_worded(quantity)}", own["evidence"].tolist(), drawn)


def _worded(measure: str) -> str:
    return _WORDS.get(measure, measure.replace("_", " "))


def _verdict(row: Mapping[Any, Any]) -> str:
    """Why there is no difference or interval, or else what was found, in a word; nothing of a scripted stand-in."""
    if row["no_interval"]:
        return "no value" if np.isnan(row["difference"]) else "no interval"
    if row["evidence"] in WITHOUT_FINDING:
        return ""
    return row["finding"] or f"p = {p_text(row['p_reported'])}".replace("= <", "<")


def _marks(data: Outcome) -> dict[str, Any]:
    """The marks that occur, in the words of legend and caption."""
    every = data.frame.reindex(columns=[f"{data.measure}_ci_low", "difference_ci_low", "smallest"])
    known, frame = every.iloc[:, :2].notna().to_numpy().any(), data.conditions
    return {
        "measure": _worded(data.measure),
        "level": f"{100 * frame['level'].iloc[0]:.4g}" if known else "",
        "units": len(data.units) > len(frame),
        "contrasts": len(data.effects),
        "smallest": [f"{size:g}" for size in every["smallest"].dropna().unique()],
        "change": frame["n_both"].any(),
        "bounds": frame["n_both"].any() and frame["n_not_both"].any(),
    }


def _legend(data: Outcome) -> Iterator[Any]:
    """Entries for the marks that occur."""
    told = _marks(data)
    yield Line2D([], [], **_MEAN, label=f"mean with {told['level']} % interval" if told["level"] else "mean")
    if told["units"]:
        several = data.units["topic"].nunique() > 1 and "topic" not in data.axes
        yield Line2D([], [], **_UNIT, label="one block of a topic" if several else "one block")
    if told["smallest"]:
        yield Patch(color=_BAND, label=f"less than the smallest effect of interest ({' or '.join(told['smallest'])})")
    if told["bounds"]:
        yield Line2D([], [], **_BOUNDS, label="what the change could be for all agents")


def _placed(figure: Figure, columns: list[list[_Panel]], below: list[_Panel]) -> Iterator[tuple[_Panel, Axes]]:
    """Panels with their axes: in columns that begin at the same height, and others below in the full width."""
    high = [sum(each.height for each in column) for column in columns]
    grid = figure.add_gridspec(1 + len(below), 1, height_ratios=[max(high), *(each.height for each in below)])
    top = grid[0].subgridspec(1, len(columns))
    for place, column in enumerate(columns):
        rest = [max(high) - high[place]] if max(high) > high[place] else []
        parts = [*(each.height for each in column), *rest]
        # A panel alone is aligned with that beside it.
        own = top[place].subgridspec(len(parts), 1, height_ratios=parts) if len(parts) > 1 else [top[place]]
        yield from ((each, figure.add_subplot(own[down])) for down, each in enumerate(column))
    yield from ((each, figure.add_subplot(grid[place])) for place, each in enumerate(below, 1))


def _shown(results: Results) -> Iterator[Shown]:
    yield Shown("outcome")


@part("figure", name="outcome", numbers=outcome_data, shown=_shown, metrics=True)
@drawn_from(outcome_data)
def outcome(data: Outcome) -> Figure:
    """Draw the primary outcome by condition, the contrasts of conditions, and how agents changed.

    Parameters
    ----------
    results, kind, wording, estimand
        As for :func:`opinionsim.analysis.outcome_data`, which has the numbers.

    Returns
    -------
    Figure
        One row per condition, in the order of the specification: its mean with an interval over independent units, and
        single units as faint dots. One row per contrast: the difference with its interval, on a band as wide as the
        smallest effect of interest, and the finding at the right, which scripted runs do not have. One row a
        condition for the change of agents with an opinion at both ends: the number of these agents among all, and what
        the change could be for all agents. A panel with scripted runs says so inside its frame.

    Raises
    ------
    SpecError
        As for :func:`opinionsim.analysis.outcome_data`.
    """
    frame, many = data.conditions, len(data.conditions) > _FEW
    inches, stacked = page(7.2), is_narrow() and not many
    # Characters of names are smaller than those of titles, for which widths are.
    room = 1.2 * inches * (_NAMES if stacked else _NAMES / 2)
    rows, varied = _named(data, room)
    right = list(_contrasts(data, room))
    together, evidence = many or not right, frame["evidence"].tolist()
    counts = zip(frame["n_runs"] - frame["n_withheld"], frame["n_runs"], strict=True)
    runs = [f"{n} of {of} runs" for n, of in counts] if frame["n_withheld"].any() else []
    axis = f"{_worded(data.measure)} at the end"
    left = [_Panel(rows, runs, axis, evidence, partial(draw_conditions, data, rows))]
    if frame["n_both"].any():
        counts = zip(frame["n_both"], frame["n_both"] + frame["n_not_both"], strict=True)
        both = [f"{n} of {of}" if of else "none" for n, of in counts]
        axis = "change in mean opinion, end minus start (right: agents with both)"
        drawn, named = partial(draw_change, frame, rows), stacked or not together
        left.append(_Panel(rows, both, axis, evidence, drawn, named))
    columns, below = ([[each] for each in left], right) if together else ([left, right], [])
    if stacked:
        columns, below = [[*left[:1], *right, *left[1:]]], []
    height = max(sum(each.height for each in column) for column in columns) + sum(each.height for each in below)
    shown = sentences("opinionsim.plots", "outcome.txt", **_marks(data))
    figure = new_figure([data.evidence, *shown, *data.notes], inches, height)
    for each, ax in _placed(figure, columns, below):
        each.finish(ax, (1.7 if each in left else 2) * room)
    figure.axes[0].set_ylabel(varied, fontsize=pt(8))
    legend_below(figure, list(_legend(data)))
    return figure
