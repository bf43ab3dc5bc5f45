"""What a study asks: its primary outcome by condition, its contrasts, and how agents changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from opinionsim.analysis import Outcome, outcome_data, p_text
from opinionsim.drawing import BAR, INK, heading, is_narrow, legend_below, new_figure, page, pt, signed, tidy
from opinionsim.metrics import WITHOUT_FINDING, axis_name
from opinionsim.plots._inputs import drawn_from
from opinionsim.plots._shown import Shown
from opinionsim.registry import part
from opinionsim.store import Results

#: Most conditions whose change has a panel below theirs; that of more is beside them, in the same rows.
_FEW = 8
#: Inches of a line of a row, and about the rows of a panel; and the share of a panel's width that names may take.
_LINE, _ABOUT, _NAMES = 0.15, 0.62, 0.4
#: What outcomes are called.
_WORDS: Mapping[str, str] = {"bias": "mean opinion", "diversity": "diversity of opinions"}
_MEAN: Mapping[str, Any] = {"color": "black", "marker": "o", "markersize": 4, "linestyle": "none", "linewidth": 1.1}
_UNIT: Mapping[str, Any] = {"color": INK, "marker": "o", "markersize": 2.6, "linestyle": "none", "alpha": 0.4}
_BOUNDS: Mapping[str, Any] = {"color": BAR, "linewidth": 3, "solid_capstyle": "butt"}
_BAND = "#E3E7EA"
_WHITE: Mapping[str, Any] = {"facecolor": "white", "edgecolor": "none", "pad": 1}


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


def _panel(
    ax: Axes, rows: _Rows, right: Sequence[str], x: str, evidence: Sequence[str], width: float, *, named: bool = True
) -> None:
    """Name the rows at the left, write what is known of each at the right, and stamp what is scripted in the frame."""
    stamped = [each for each in evidence if each in WITHOUT_FINDING]
    ax.set_ylim(rows.height, -1.4 if stamped else 0)
    if stamped:
        said = "SCRIPTED STAND-IN" if "scripted" in stamped else "MAYBE A SCRIPTED STAND-IN"
        look = {"color": INK, "fontsize": pt(6.5), "fontweight": "bold", "ha": "center", "va": "center"}
        ax.text(0.5, -0.65, said, transform=ax.get_yaxis_transform(), bbox=_WHITE, **look)
    tidy(ax)
    ax.set_yticks(rows.at, rows.names if named else [])
    for at, head in rows.heads.items() if named else ():
        ax.text(0.02, at, head, transform=ax.get_yaxis_transform(), fontsize=pt(7), fontweight="bold", va="center",
                bbox=_WHITE)  # fmt: skip
    ax.tick_params(labelsize=pt(7.5))
    ax.tick_params(axis="y", length=0)
    ax.margins(x=0.08)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=4 if is_narrow() else 5, steps=[1, 2, 5, 10], min_n_ticks=2))
    ax.grid(axis="x", color="#E4E4E4", linewidth=0.8)
    ax.set_xlabel(heading([x], width), fontsize=pt(8))
    if any(right):
        beside = ax.secondary_yaxis("right")
        beside.set_yticks(rows.at, right, fontsize=pt(7))
        beside.tick_params(length=0)
        beside.spines[:].set_visible(False)


def _errorbar(ax: Axes, frame: pd.DataFrame, value: str, at: np.ndarray, **look: Any) -> None:
    """Draw means with their intervals, where they have any."""
    ends = frame[[f"{value}_ci_low", f"{value}_ci_high"]].sub(frame[value], axis=0).abs().to_numpy().T
    ax.errorbar(frame[value], at, xerr=ends, **{**_MEAN, **look})


def draw_conditions(data: Outcome, rows: _Rows, ax: Axes) -> None:
    """Draw the outcome of each condition as a point with its interval, and its units as faint dots."""
    frame, own = data.conditions, list(dict.fromkeys([*data.axes, "evidence"]))
    units = data.units.merge(frame[own].assign(row=range(len(frame))), on=own)
    if len(units) > len(frame):
        ax.plot(units[data.measure], rows.at[units["row"]] + 0.32, **_UNIT)
    _errorbar(ax, frame, data.measure, rows.at)
    for lacking in np.flatnonzero(frame[data.measure].isna()):
        ax.text(0.5, rows.at[lacking], "withheld", transform=ax.get_yaxis_transform(), ha="center", va="center",
                color=INK, fontsize=pt(7))  # fmt: skip


def draw_contrasts(frame: pd.DataFrame, rows: _Rows, ax: Axes) -> None:
    """Draw differences with their intervals, on a band as wide as the smallest effect of interest."""
    for at, smallest in zip(rows.at, frame["smallest"], strict=True):
        if smallest:
            ax.fill_betweenx([at - 0.65, at + 0.65], -smallest, smallest, color=_BAND, linewidth=0, zorder=0)
    ax.axvline(0, color=INK, linestyle="--", linewidth=0.9)
    declared = (frame["role"] != "exploratory").to_numpy()
    for chosen, fill in ((declared, "black"), (~declared, "white")):
        if chosen.any():
            _errorbar(ax, frame[chosen], "difference", rows.at[chosen], markerfacecolor=fill)


def draw_change(frame: pd.DataFrame, rows: _Rows, ax: Axes) -> None:
    """Draw the change of agents with an opinion at both ends, on a bar that says what it could be for all agents."""
    for at, (low, high), lacking in zip(
        rows.at, frame[["change_low", "change_high"]].to_numpy(), frame["n_not_both"], strict=True
    ):
        if lacking:
            ax.plot([low, high], [at, at], **_BOUNDS)
    ax.axvline(0, color=INK, linestyle="--", linewidth=0.9)
    ax.plot(frame["change"].where(frame["n_both"] > 0), rows.at, **_MEAN)


def _verdict(row: Mapping[Any, Any]) -> str:
    """Why there is no difference or interval, or else what was found, in a word; nothing of a scripted stand-in."""
    if row["no_interval"]:
        return "no value" if np.isnan(row["difference"]) else "no interval"
    if row["evidence"] in WITHOUT_FINDING:
        return ""
    return row["finding"] or f"p = {p_text(row['p_reported'])}".replace("= <", "<")


def _legend(data: Outcome, contrasts: pd.DataFrame, *, change: bool) -> Iterator[Any]:
    """Entries for the marks that occur."""
    frame = data.conditions
    known = data.frame.reindex(columns=[f"{data.measure}_ci_low", "difference_ci_low"]).notna().to_numpy().any()
    level = f" with {100 * frame['level'].iloc[0]:.4g} % interval" if known else ""
    yield Line2D([], [], **_MEAN, label=f"mean{level}")
    if len(data.units) > len(frame):
        several = data.units["topic"].nunique() > 1 and "topic" not in data.axes
        yield Line2D([], [], **_UNIT, label="one block of a topic" if several else "one block")
    if len(contrasts) and (contrasts["role"] == "exploratory").any():
        yield Line2D([], [], **{**_MEAN, "markerfacecolor": "white"}, label="not declared beforehand (exploratory)")
    if len(contrasts) and contrasts["smallest"].notna().any():
        sizes = [signed(size, 3).rstrip("0").rstrip(".") for size in contrasts["smallest"].dropna().unique()]
        yield Patch(color=_BAND, label=f"less than the smallest effect of interest ({' or '.join(sizes)})")
    if change and frame["n_not_both"].any():
        yield Line2D([], [], **_BOUNDS, label="what the change could be for all agents")


def _placed(
    figure: Figure, columns: Sequence[Sequence[str]], below: Sequence[str], heights: Mapping[str, float]
) -> dict[str, Axes]:
    """Panels of some heights in columns that begin at the same height, and others below in the full width."""
    sums = [sum(heights[name] for name in column) for column in columns]
    grid = figure.add_gridspec(1 + len(below), 1, height_ratios=[max(sums), *(heights[name] for name in below)])
    panels = {name: figure.add_subplot(grid[place + 1]) for place, name in enumerate(below)}
    top = grid[0].subgridspec(1, len(columns))
    if max(map(len, columns)) == 1:
        # Panels of one row are aligned.
        return panels | {name: figure.add_subplot(top[place]) for place, (name,) in enumerate(columns)}
    for place, (column, high) in enumerate(zip(columns, sums, strict=True)):
        rest = [max(sums) - high] if max(sums) > high else []
        parts = [*(heights[name] for name in column), *rest]
        own = top[place].subgridspec(len(parts), 1, height_ratios=parts)
        panels |= {name: figure.add_subplot(own[down]) for down, name in enumerate(column)}
    return panels


def _shown(results: Results) -> Iterator[Shown]:
    yield Shown("outcome", "What the study asks: the outcome of each condition, contrasts, and how agents changed.")


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
        One row a condition, in the order of the specification: its mean with an interval over independent units, and
        single units as faint dots. One row a contrast: the difference with its interval, on a band as wide as the
        smallest effect of interest, and at the right what was found, which scripted runs do not have. One row a
        condition for the change of agents with an opinion at both ends: how many of all these are, and what the change
        could be for all. A panel with scripted runs says so inside its frame.

    Raises
    ------
    SpecError
        As for :func:`opinionsim.analysis.outcome_data`.
    """
    frame, contrasts = data.conditions, data.contrasts
    quantities = list(dict.fromkeys(effect.contrast.quantity for effect in data.effects))
    change, many = bool(frame["n_both"].any()), len(frame) > _FEW
    inches, stacked = page(7.2), is_narrow() and not many
    # Characters of names are smaller than those of titles, for which widths are.
    room = 1.2 * inches * (_NAMES if stacked else _NAMES / 2)
    rows, varied = _named(data, room)
    roles = contrasts["role"].nunique() > 1 if len(contrasts) else False
    parts = {}
    for quantity in quantities:
        own = contrasts[[effect.contrast.quantity == quantity for effect in data.effects]]
        names = [f"{row.contrast} ({row.role})" if roles else row.contrast for row in own.itertuples()]
        parts[f"contrasts {quantity}"] = own, _rows(names, room)
    left, right = ["conditions", *(["change"] if change else [])], list(parts)
    stamp = 1.4 * any(each in WITHOUT_FINDING for each in frame["evidence"])
    lines = dict.fromkeys(left, rows.height) | {name: own.height for name, (_, own) in parts.items()}
    heights = {name: _ABOUT + _LINE * pt(1) * (stamp + high) for name, high in lines.items()}
    together = many or not right
    if stacked:
        columns = [[*left[:1], *right, *left[1:]]]
    elif together:
        columns = [[name] for name in left]
    else:
        columns = [left, right]
    high = max(sum(heights[name] for name in column) for column in columns)
    below = right if together else []
    figure = new_figure([data.evidence, *data.notes], inches, high + sum(heights[name] for name in below))
    panels = _placed(figure, columns, below, heights)
    evidence = list(frame["evidence"])
    draw_conditions(data, rows, ax := panels["conditions"])
    runs = [f"{row.n_runs - row.n_withheld} of {row.n_runs} runs" for row in frame.itertuples()]
    told = f"{_WORDS.get(data.measure, data.measure.replace('_', ' '))} at the end"
    _panel(ax, rows, runs if frame["n_withheld"].any() else [], told, evidence, 1.7 * room)
    ax.set_ylabel(varied, fontsize=pt(8))
    if change:
        draw_change(frame, rows, ax := panels["change"])
        pairs = zip(frame["n_both"], frame["n_both"] + frame["n_not_both"], strict=True)
        both = [f"{n} of {of}" if of else "none" for n, of in pairs]
        said = "change, end less start (right: agents with both, of all)"
        _panel(ax, rows, both, said, evidence, 1.7 * room, named=stacked or not together)
    for quantity, (name, (own, own_rows)) in zip(quantities, parts.items(), strict=True):
        draw_contrasts(own, own_rows, ax := panels[name])
        said = f"difference in {_WORDS.get(quantity, quantity.replace('_', ' '))}"
        _panel(ax, own_rows, [_verdict(row) for row in own.to_dict("records")], said, list(own["evidence"]), 2 * room)
    legend_below(figure, list(_legend(data, contrasts, change=change)))
    return figure
