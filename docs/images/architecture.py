"""Draws architecture.png: a real schedule as a graph of turns, and the way from a specification to a figure.

Run: python docs/images/architecture.py
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from opinionsim.engine import critical_path
from opinionsim.schedules import Dyads, Setting, Turn

INK, SOFT, LINE = "#22313a", "#5f717c", "#c9d3d9"
WRITE, REVIEW = "#f3c969", "#7fb2d6"
IDEA = "#b5485d"
# A seed whose posts cross few lanes, so that the arrows stay clear of the boxes.
N_AGENTS, STEPS, SEED = 5, 8, 277


def earliest(turns: list[Turn]) -> dict[int, int]:
    """The call round in which each turn can start, with cumulative memory and free slots."""
    starts: dict[int, int] = {}
    free: dict[int, int] = {}
    for turn in turns:
        read = [starts[ref] + 1 for ref in turn.reads if isinstance(ref, int)]
        starts[turn.index] = max([0, *read, free.get(turn.agent, 0)])
        free[turn.agent] = starts[turn.index] + 1
    return starts


def box(ax: Axes, x: float, y: float, width: float, height: float, colour: str, text: str, **style: Any) -> None:
    """A rounded box with a text in its middle."""
    edge = style.pop("edge", "white")
    shape = "round,pad=0,rounding_size=0.08"
    ax.add_patch(FancyBboxPatch((x, y), width, height, boxstyle=shape, fc=colour, ec=edge, lw=1.2, zorder=3))
    ax.text(x + width / 2, y + height / 2, text, ha="center", va="center", color=INK, zorder=4, **style)


def arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float], colour: str = SOFT, **style: Any) -> None:
    """A thin arrow."""
    options: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 10, "lw": 1.3, "zorder": 2, **style}
    ax.add_patch(FancyArrowPatch(start, end, color=colour, shrinkA=0, shrinkB=0, **options))


def badge(ax: Axes, x: float, y: float, number: int) -> None:
    """The number of an idea."""
    ax.text(
        x, y, str(number), ha="center", va="center", color="white", size=9, weight="bold", zorder=6,
        bbox={"boxstyle": "circle,pad=0.25", "fc": IDEA, "ec": "white", "lw": 1},
    )  # fmt: skip


def draw_sequence(ax: Axes, turns: list[Turn]) -> None:
    """The calls one after another, in index order."""
    for turn in turns:
        colour = WRITE if turn.act == "write" else REVIEW
        box(ax, turn.index + 0.04, 0.1, 0.84, 0.8, colour, f"{turn.agent}", size=9)
    ax.text(-0.2, 0.5, "agent", ha="right", va="center", size=9, color=SOFT)
    ax.set(xlim=(-1.1, len(turns) + 0.1), ylim=(0, 1))
    ax.set_title(f"One call after another: {len(turns)} calls long", loc="left", size=11, color=INK)
    ax.axis("off")


def draw_graph(ax: Axes, turns: list[Turn], length: int, n_calls: int) -> None:
    """The same calls where the graph lets them start: a lane an agent, time to the right."""
    starts = earliest(turns)
    where = {turn.index: (starts[turn.index], N_AGENTS - 1 - turn.agent) for turn in turns}
    for agent in range(N_AGENTS):
        lane = N_AGENTS - 1 - agent
        ax.plot([-0.1, length], [lane + 0.5] * 2, color=LINE, lw=0.8, zorder=0)
        ax.text(-0.2, lane + 0.5, f"agent {agent}", ha="right", va="center", size=9, color=SOFT)
    for turn in turns:
        x, y = where[turn.index]
        post = turn.act == "write"
        text = f"{'writes' if post else 'reviews'}\nstep {turn.step}"
        box(ax, x + 0.04, y + 0.14, 0.84, 0.72, WRITE if post else REVIEW, text, size=7.5, linespacing=1.15)
        for ref in turn.reads:
            source_x, source_y = where[int(ref)]  # type: ignore[arg-type]
            down = y < source_y
            start = (source_x + 0.7, source_y + (0.14 if down else 0.86))
            end = (x + 0.24, y + (0.86 if down else 0.14))
            arrow(ax, start, end, IDEA, zorder=5)
    ax.axvline(length, ymin=0.02, ymax=0.98, color=SOFT, lw=1, ls=":")
    ax.set(xlim=(-1.1, n_calls + 0.1), ylim=(0, N_AGENTS))
    title = f"As the graph allows: {length} calls long, with exactly the same messages"
    ax.set_title(title, loc="left", size=11, color=INK)
    key = [
        (WRITE, "writes a post"),
        (REVIEW, "reads it and reports"),
    ]
    left = length + 0.6
    for row, (colour, text) in enumerate(key):
        box(ax, left, 4.05 - 0.62 * row, 0.5, 0.4, colour, "")
        ax.text(left + 0.7, 4.25 - 0.62 * row, text, va="center", size=9, color=INK)
    arrow(ax, (left, 3.0), (left + 0.5, 3.0), IDEA)
    ax.text(left + 0.7, 3.0, "the post that is read", va="center", size=9, color=INK)
    note = (
        "A turn waits for what it reads and for\nits agent's own memory, and for\nnothing else. When slots are short,\n"
        "the call with the longest chain\nbehind it goes first."
    )
    ax.text(left, 2.45, note, va="top", size=9, color=SOFT, linespacing=1.45)
    ax.axis("off")


def draw_flow(ax: Axes) -> None:
    """From a specification to a figure."""
    top, bottom, height = 1.75, 0.1, 0.82
    calm, live, kept = "#e9eef1", "#dfeaf3", "#f8eccb"
    steps = [
        (0.0, 1.7, "specification", "YAML, sweep", "specification/", calm),
        (2.1, 1.4, "runs", "one identity each", "assembly/ running/", calm),
        (3.9, 1.55, "schedule", "turns, acts, needs", "schedules/", live),
        (5.85, 1.55, "engine", "out of order", "engine/", live),
        (7.8, 1.55, "cast", "role, memory", "actors memory/", live),
        (9.75, 1.55, "caller", "journal, slots, parse", "llm/", live),
        (11.7, 1.5, "model", "or a person", "llm/", calm),
    ]
    for x, width, name, what, room, colour in steps:
        box(ax, x, top, width, height, colour, f"{name}\n\n", size=10, weight="bold", edge=LINE)
        ax.text(x + width / 2, top + 0.36, what, ha="center", va="center", size=8, color=SOFT, zorder=5)
        ax.text(x + width / 2, top + 0.14, room, ha="center", va="center", size=7, color=IDEA, zorder=5)
    for (x, width, *_), (following, *_) in pairwise(steps):
        arrow(ax, (x + width + 0.04, top + height / 2), (following - 0.04, top + height / 2))
    arrow(ax, (11.66, top + 0.2), (11.34, top + 0.2))
    arrow(ax, (5.81, top + 0.2), (5.49, top + 0.2), ls="--")
    ax.text(5.65, top + height + 0.16, "replies, decisions, opinions", ha="center", size=8, color=SOFT)
    lower = [
        (9.55, 1.95, "store", "journal, turns, opinions", "store/", kept),
        (6.45, 2.4, "instruments", "text to opinion, any number", "measurement/ classifiers/", kept),
        (3.9, 1.85, "frames", "tidy, with evidence", "store/ metrics/", kept),
        (0.0, 3.2, "tables · figures · transcripts", "stamped with evidence", "analysis/ comparison/ plots/", kept),
    ]
    for x, width, name, what, room, colour in lower:
        box(ax, x, bottom, width, height, colour, f"{name}\n\n", size=10, weight="bold", edge=LINE)
        ax.text(x + width / 2, bottom + 0.36, what, ha="center", va="center", size=8, color=SOFT, zorder=5)
        ax.text(x + width / 2, bottom + 0.14, room, ha="center", va="center", size=7, color=IDEA, zorder=5)
    arrow(ax, (10.52, top - 0.04), (10.52, bottom + height + 0.04), arrowstyle="<|-|>")
    ax.text(10.66, 1.33, "resume, replay", va="center", size=8, color=SOFT)
    arrow(ax, (8.0, top - 0.04), (7.75, bottom + height + 0.04))
    ax.text(7.8, 1.33, "texts", va="center", ha="right", size=8, color=SOFT)
    arrow(ax, (8.6, bottom + height + 0.04), (9.95, top - 0.04), ls="--")
    ax.text(9.1, 1.5, "judges ask", va="center", ha="right", size=8, color=SOFT)
    arrow(ax, (8.89, bottom + height / 2), (9.51, bottom + height / 2))
    ax.plot([10.52, 10.52, 4.82], [bottom - 0.04, bottom - 0.25, bottom - 0.25], color=SOFT, lw=1.3)
    arrow(ax, (4.82, bottom - 0.25), (4.82, bottom - 0.02))
    arrow(ax, (3.86, bottom + height / 2), (3.24, bottom + height / 2))
    arrow(ax, (7.0, bottom + height + 0.04), (6.6, top - 0.04), ls="--")
    ax.text(6.66, 1.33, "opinions a schedule\nacts on", va="center", ha="right", size=8, color=SOFT)
    for number, x, y in ((1, 3.9, top), (2, 5.85, top), (3, 9.75, top), (4, 6.45, bottom)):
        badge(ax, x, y + height, number)
    ax.set(xlim=(-0.15, 13.35), ylim=(-0.2, 2.8))
    ax.set_title(
        "From a specification to a figure, with the places of ideas 1 to 4 and the rooms of the package",
        loc="left",
        size=11,
        color=INK,
    )
    ax.axis("off")


def main() -> None:
    """Draw the picture beside this file."""
    schedule = Dyads(steps=STEPS).schedule(Setting.of(N_AGENTS, SEED))
    turns = list(schedule.turns())
    length = critical_path(schedule).length
    figure = plt.figure(figsize=(11, 8.6), layout="constrained")
    rows = figure.subplots(3, 1, height_ratios=[0.55, 3.6, 2.5])
    draw_sequence(rows[0], turns)
    draw_graph(rows[1], turns, length, len(turns))
    draw_flow(rows[2])
    path = Path(__file__).with_suffix(".png")
    figure.savefig(path, dpi=115, metadata={"Software": "opinionsim"})


if __name__ == "__main__":
    main()
