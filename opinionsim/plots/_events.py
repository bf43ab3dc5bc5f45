"""Marks of events in figures over time."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import shorten

from matplotlib.axes import Axes

from opinionsim.plots._style import INK, pt
from opinionsim.store import Mark

#: Most characters of the label of a mark.
_LABEL = 36


def draw_marks(ax: Axes, marks: Iterable[Mark]) -> None:
    """Draw a thin dashed line at each step with events, and their names along it."""
    labels: dict[int, dict[str, None]] = {}
    for step, label in marks:
        labels.setdefault(step, {})[label] = None
    for step, names in sorted(labels.items()):
        ax.axvline(step, color=INK, linewidth=0.8, linestyle=(0, (4, 3)), alpha=0.8, zorder=1)
        text = shorten(", ".join(names), _LABEL, placeholder=" …")
        ax.annotate(
            text,
            (step, 1),
            xycoords=ax.get_xaxis_transform(),
            xytext=(-2, -2),
            textcoords="offset points",
            rotation=90,
            ha="right",
            va="top",
            fontsize=pt(6.5),
            color=INK,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.6},
            zorder=4,
            annotation_clip=False,
        )
