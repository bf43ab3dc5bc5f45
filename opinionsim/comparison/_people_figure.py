"""The figure of people beside those in their places: what changed, and response curves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from opinionsim.analysis import Table

#: Measures that are drawn as points, with what is written above them.
_MEASURES = {
    "share that changed": "Share that changed",
    "variance ratio within groups": "Variance within groups,\nlast over first",
    "mean error of a guess": "Mean error of a guess\nof the last opinion",
    "log score": "Log score,\nnats an update",
}
_INK = {"human": "#22313a", "model": "#b5485d", "scripted": "#b5485d", "equation": "#3f7cac", "mixed": "#b5485d"}
_MARKS = ("o", "s", "^", "D", "v", "P", "X")


def people_figure(table: Table) -> Figure:
    """People, models in their places and equations, from :func:`opinionsim.comparison.people_table`.

    Parameters
    ----------
    table : Table
        The table.

    Returns
    -------
    Figure
        Above, measures with 95 % intervals; below, the mean change by first opinion, people's with their interval.
    """
    from matplotlib.figure import Figure

    frame = table.frame
    ofs = list(dict.fromkeys(frame["of"]))
    evidence = dict(zip(frame["of"], frame["evidence"], strict=True))
    colours = {of: _INK[evidence[of]] for of in ofs}
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
