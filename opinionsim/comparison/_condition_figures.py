"""Figures of the findings in each condition, and of people compared with models in their places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from opinionsim.analysis import Table
from opinionsim.comparison._scores import standard_error
from opinionsim.comparison._updates import response_curve, updates_of
from opinionsim.foundation.streams import stream
from opinionsim.metrics import evidence_statement

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from opinionsim.comparison._findings import Explained

#: Colours of the record, and of the best candidates with and without influence.
_RECORD, _INFLUENCE, _NONE = "#22313a", "#3f7cac", "#b5485d"
#: Colour of marks of no candidate in particular, and the look of the score of a table of shares.
_SOFT = "#8796a0"
_REACHED: Mapping[str, Any] = {"color": _SOFT, "linewidth": 1.0, "linestyle": "--"}
#: Inches above which a condition has one row of panels.
_WIDE = 9.0
#: What a reader needs to know besides the legend.
_CAPTION = "Lines and bands of candidates are those of the best one with influence and the best one without"
#: Studies drawn for the curve of a candidate, and parts of the range of opinions that distances are rounded to.
_DRAWN, _PARTS = 5, 16

#: Measures that are drawn as points, with what is written above them.
_MEASURES = {
    "share that changed": "Share that changed",
    "variance ratio within groups": "Variance within groups,\nlast over first",
    "mean error of a guess": "Mean error of a guess\nof the last opinion",
    "log score": "Log score,\nnats an update",
}
_INK = {"human": "#22313a", "model": "#b5485d", "scripted": "#b5485d", "equation": "#3f7cac", "mixed": "#b5485d"}
_MARKS = ("o", "s", "^", "D", "v", "P", "X")


def comparison_figure(explained: Mapping[str, Explained]) -> Figure:
    """The figure of :meth:`opinionsim.comparison.Comparison.plot`: a row for each condition."""
    from opinionsim.drawing import heading, is_narrow, legend_below, new_figure, page, pt

    columns = 1 if is_narrow() else 4 if page(12.0) > _WIDE else 2
    n_rows = len(explained) * 4 // columns
    lines = [evidence_statement(each.study.evidence for each in explained.values()), _CAPTION]
    figure = new_figure(lines, 12.0, (2.6 if columns == 4 else 2.0) * n_rows)
    axes = figure.subplots(n_rows, columns, squeeze=False).reshape(len(explained), 4)
    for (cell, found), row in zip(explained.items(), axes, strict=True):
        curve, dots, *steps = row
        pair = list(dict.fromkeys(found.free["candidate"]))
        colours = {one.candidate.name: _INFLUENCE if one.candidate.influence else _NONE for one in found.fits}
        _draw_response(curve, found, {name: colours[name] for name in pair})
        _draw_scores(dots, found, colours)
        for ax, measure in zip(steps, ("bias", "diversity"), strict=True):
            own = found.free[found.free["measure"] == measure]
            for name in pair:
                band = own[own["candidate"] == name]
                ax.fill_between(band["step"], band["low"], band["high"], color=colours[name], alpha=0.25, lw=0)
            ax.plot(band["step"], band["observed"], color=_RECORD, lw=1.4)
            ax.set(xlabel="step", ylabel={"bias": "mean opinion"}.get(measure, measure))
        title = heading([f"{cell}: {found.finding}"], figure.get_figwidth() / columns - 1.3)
        curve.set_title(title, fontsize=pt(9), loc="left", fontweight="bold")
        for ax in row:
            ax.spines[["top", "right"]].set_visible(False)
            ax.tick_params(labelsize=pt(8))
            ax.set_xlabel(ax.get_xlabel(), fontsize=pt(9))
            ax.set_ylabel(ax.get_ylabel(), fontsize=pt(9))
    legend_below(figure, _handles(shares=not all(each.study.exact for each in explained.values())))
    return figure


def _handles(*, shares: bool) -> list[Artist]:
    """Legend entries for all marks but the candidates of response curves; `shares` if a table of them is scored."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    dot: Mapping[str, Any] = {"marker": "o", "linestyle": "none", "color": _SOFT}
    return [
        Line2D([], [], color=_RECORD, marker="o", markersize=3.5, label="on record"),
        Patch(color=_RECORD, alpha=0.15, linewidth=0, label="its 95% interval over blocks"),
        Line2D([], [], color=_INFLUENCE, linewidth=1.6, label="candidate with influence"),
        Line2D([], [], color=_NONE, linewidth=1.6, label="candidate without influence"),
        Patch(color=_SOFT, alpha=0.4, linewidth=0, label="95% of free runs of a candidate"),
        Line2D([], [], **dot, label="best score, or a tie with it"),
        Line2D([], [], **dot, markerfacecolor="white", label="lower score"),
        Line2D([], [], color=_SOFT, linewidth=1.4, label="standard error"),
        *([Line2D([], [], **_REACHED, label="score of a table of shares")] if shares else []),
    ]


def _draw_response(ax: Axes, found: Explained, colours: Mapping[str, str]) -> None:
    """Mean change by distance of what was read, on record and in studies drawn from candidates."""
    from opinionsim.drawing import pt

    record = _rounded([updates_of(found.study)], found)
    # No change is larger than the scale, however wide a band of few runs is.
    span = float(np.ptp(found.study.points))
    low, high = record["low"].clip(-span, span), record["high"].clip(-span, span)
    ax.fill_between(record["discrepancy"], low, high, color=_RECORD, alpha=0.15, lw=0)
    ax.plot(record["discrepancy"], record["change"], "o", color=_RECORD, ms=3.5, label="record")
    fits = {one.candidate.name: one for one in found.fits}
    for name, colour in colours.items():
        one = fits[name]
        rngs = [stream(0, "response curve", number, name) for number in range(_DRAWN)]
        drawn = _rounded([updates_of(found.problem.redrawn(one.candidate, one.values, rng)) for rng in rngs], found)
        drawn = drawn[drawn["discrepancy"].isin(record["discrepancy"])]
        ax.plot(drawn["discrepancy"], drawn["change"], color=colour, lw=1.6, label=name)
    ax.axhline(0.0, color=_SOFT, lw=0.8)
    ax.set(xlabel="message less own opinion", ylabel="mean change")
    ax.legend(frameon=False, fontsize=pt(8))


def _rounded(updates: Sequence[pd.DataFrame], found: Explained) -> pd.DataFrame:
    """The response curve over even distances."""
    joined = pd.concat(updates)
    part = (found.study.points[-1] - found.study.points[0]) / _PARTS
    distance = ((joined["said"] - joined["before"]) / part).round() * part
    changed = joined["after"] - joined["before"]
    return response_curve(joined.assign(before=0.0, said=distance, after=changed))


def _draw_scores(ax: Axes, found: Explained, colours: Mapping[str, str]) -> None:
    """Scores of candidates with standard errors, the best above, and that of a table of shares."""
    means = found.scores.mean(axis=0)
    errors = [standard_error(found.study, own) for own in found.scores.T]
    order = np.argsort(-means, kind="stable")
    names = [found.fits[at].candidate.name for at in order]
    for place, (at, name) in enumerate(zip(order, names, strict=True)):
        look: dict[str, Any] = {"color": colours[name]}
        look["markerfacecolor"] = colours[name] if name in found.ties else "white"
        ax.errorbar(means[at], place, xerr=errors[at], fmt="o", ms=5, lw=1.4, **look)
    if not found.study.exact:
        ax.axvline(found.reachable.mean(), **_REACHED)
    ax.set(yticks=range(len(names)), yticklabels=names, ylim=(len(names) - 0.5, -0.5), xlabel="log score of an update")
    ax.grid(axis="x", color="#dde3e7", lw=0.7)


def people_figure(table: Table) -> Figure:
    """People, models in their places and equations, from :func:`opinionsim.comparison.people_table`.

    Parameters
    ----------
    table : Table
        The table.

    Returns
    -------
    Figure
        The upper part shows measures with 95 % intervals; the lower part shows the mean change by first opinion, with
        an interval for people.
    """
    from matplotlib.figure import Figure

    frame = table.frame
    ofs = list(dict.fromkeys(frame["of"]))
    evidence = dict(zip(frame["of"], frame["evidence"], strict=True))
    colours = {of: _INK.get(evidence[of], _INK["mixed"]) for of in ofs}
    figure = Figure(figsize=(9.0, 3.1 + 0.34 * len(ofs)), layout="constrained")
    axes = figure.subplot_mosaic([list("abcd"), list("eeee")], height_ratios=[0.34 * len(ofs), 2.6])
    for axis, (measure, title) in zip("abcd", _MEASURES.items(), strict=True):
        ax, rows = axes[axis], frame[frame["measure"] == measure].set_index("of")
        for place, of in enumerate(ofs):
            if of in rows.index:
                value, low, high = rows.loc[of, ["value", "low", "high"]]
                ax.plot([low, high], [place, place], color=colours[of], lw=1.6)
                ax.plot(value, place, _MARKS[place % len(_MARKS)], color=colours[of], ms=5)
        ax.set(ylim=(len(ofs) - 0.5, -0.5), yticks=range(len(ofs)), yticklabels=ofs if axis == "a" else [])
        ax.set_title(title, fontsize=9)
        ax.grid(axis="x", color="#dde3e7", lw=0.7)
    curves = frame[frame["measure"].str.startswith("change from ")]
    ax = axes["e"]
    for place, of in enumerate(ofs):
        own = curves[curves["of"] == of]
        x = own["measure"].str.removeprefix("change from ").astype(float).to_numpy()
        mark = f"{_MARKS[place % len(_MARKS)]}{':' if evidence[of] == 'equation' else '-'}"
        ax.plot(x, own["value"], mark, color=colours[of], ms=5, lw=1.2, label=of, alpha=1.0 if place == 0 else 0.75)
        if place == 0:
            ax.fill_between(x, own["low"].to_numpy(), own["high"].to_numpy(), color=colours[of], alpha=0.15, lw=0)
            ax.set_xticks(np.unique(x))
    ax.axhline(0.0, color=_SOFT, lw=0.8)
    ax.set(xlabel="First opinion", ylabel="Mean change")
    ax.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    for each in axes.values():
        each.spines[["top", "right"]].set_visible(False)
        each.tick_params(labelsize=8)
    figure.suptitle(table.title, fontsize=9)
    return figure
