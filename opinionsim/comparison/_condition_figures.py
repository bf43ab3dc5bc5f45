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
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from opinionsim.comparison._findings import Explained

#: Colours of the record, and of the best candidates with and without influence.
_RECORD, _INFLUENCE, _NONE = "#22313a", "#3f7cac", "#b5485d"
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
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.0, 0.7 + 2.6 * len(explained)), layout="constrained")
    axes = figure.subplots(len(explained), 4, squeeze=False, gridspec_kw={"width_ratios": [1.2, 1, 1, 1]})
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
        curve.set_title(f"{cell}: {found.finding}", fontsize=9, loc="left", fontweight="bold")
        for ax in row:
            ax.spines[["top", "right"]].set_visible(False)
            ax.tick_params(labelsize=8)
            ax.set_xlabel(ax.get_xlabel(), fontsize=9)
            ax.set_ylabel(ax.get_ylabel(), fontsize=9)
    figure.suptitle(
        evidence_statement(each.study.evidence for each in explained.values()), fontsize=9, x=0.01, ha="left"
    )
    return figure


def _draw_response(ax: Axes, found: Explained, colours: Mapping[str, str]) -> None:
    """Mean change by distance of what was read, on record and in studies drawn from candidates."""
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
    ax.axhline(0.0, color="#8796a0", lw=0.8)
    ax.set(xlabel="message less own opinion", ylabel="mean change")
    ax.legend(frameon=False, fontsize=8)


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
        ax.axvline(found.reachable.mean(), color="#8796a0", lw=1.0, ls="--")
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
    ax.axhline(0.0, color="#8796a0", lw=0.8)
    ax.set(xlabel="First opinion", ylabel="Mean change")
    ax.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    for each in axes.values():
        each.spines[["top", "right"]].set_visible(False)
        each.tick_params(labelsize=8)
    figure.suptitle(table.title, fontsize=9)
    return figure
