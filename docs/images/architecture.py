"""Draws architecture.png, the way from a specification to a figure, and schedule.png, a real schedule as a graph.

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
        box(ax, turn.index + 0.04, 0.1, 0.84, 0.8, colour, f"{turn.agent}", size=7.5)
    ax.text(-0.2, 0.5, "agent", ha="right", va="center", size=7.5, color=SOFT)
    ax.set(xlim=(-1.1, len(turns) + 0.1), ylim=(0, 1))
    ax.set_title(f"One call after another: {len(turns)} calls long", loc="left", size=9, color=INK)
    ax.axis("off")


def draw_graph(ax: Axes, turns: list[Turn], length: int, n_calls: int) -> None:
    """The same calls where the graph lets them start: a lane an agent, time to the right."""
    starts = earliest(turns)
    where = {turn.index: (starts[turn.index], N_AGENTS - 1 - turn.agent) for turn in turns}
    for agent in range(N_AGENTS):
        lane = N_AGENTS - 1 - agent
        ax.plot([-0.1, length], [lane + 0.5] * 2, color=LINE, lw=0.8, zorder=0)
        ax.text(-0.2, lane + 0.5, f"agent {agent}", ha="right", va="center", size=7.5, color=SOFT)
    for turn in turns:
        x, y = where[turn.index]
        post = turn.act == "write"
        text = f"{'writes' if post else 'reads'}\nstep {turn.step}"
        box(ax, x + 0.04, y + 0.14, 0.84, 0.72, WRITE if post else REVIEW, text, size=6.5, linespacing=1.1)
        for ref in turn.reads:
            source_x, source_y = where[int(ref)]  # type: ignore[arg-type]
            down = y < source_y
            start = (source_x + 0.7, source_y + (0.14 if down else 0.86))
            end = (x + 0.24, y + (0.86 if down else 0.14))
            arrow(ax, start, end, IDEA, zorder=5)
    ax.axvline(length, ymin=0.02, ymax=0.98, color=SOFT, lw=1, ls=":")
    ax.set(xlim=(-1.1, n_calls + 0.1), ylim=(0, N_AGENTS))
    title = f"As the graph allows: {length} calls long, with exactly the same messages"
    ax.set_title(title, loc="left", size=9, color=INK)
    key = [
        (WRITE, "writes a post"),
        (REVIEW, "reads it and reports"),
    ]
    left = length + 0.6
    for row, (colour, text) in enumerate(key):
        box(ax, left, 4.05 - 0.62 * row, 0.5, 0.4, colour, "")
        ax.text(left + 0.7, 4.25 - 0.62 * row, text, va="center", size=7.5, color=INK)
    arrow(ax, (left, 3.0), (left + 0.5, 3.0), IDEA)
    ax.text(left + 0.7, 3.0, "the post that is read", va="center", size=7.5, color=INK)
    note = (
        "A turn waits for what it reads and for\nits agent's own memory, and for\nnothing else. When slots are short,\n"
        "the call with the longest chain\nbehind it goes first."
    )
    ax.text(left, 2.45, note, va="top", size=7.5, color=SOFT, linespacing=1.3)
    ax.axis("off")


def draw_flow(ax: Axes) -> None:
    """From a specification to a figure."""
    top, bottom, height = 1.75, 0.1, 0.75
    calm, live, kept = "#e9eef1", "#dfeaf3", "#f8eccb"
    boxes = {
        "specification": (0.0, top, 1.75, "kind of study,\nsweep", calm),
        "schedule": (2.05, top, 1.75, "turns and\nwhat they read", live),
        "engine": (4.1, top, 1.75, "runs turns\nout of order", live),
        "agents": (6.15, top, 1.75, "roles, memory,\nprompts", live),
        "caller": (8.2, top, 1.75, "retries, slots,\nbudgets", live),
        "model": (10.25, top, 1.75, "or a person", calm),
        "tables, figures": (0.0, bottom, 2.3, "reports, transcripts,\nwith their evidence", kept),
        "frames": (2.9, bottom, 1.6, "one row\nan observation", kept),
        "instruments": (5.1, bottom, 2.3, "from text to opinion,\nany number", kept),
        "store": (8.2, bottom, 1.75, "journal, turns,\nopinions", kept),
        "slices": (10.25, bottom, 1.75, "kinds of study,\nparts, commands", calm),
    }
    for name, (x, y, width, what, colour) in boxes.items():
        box(ax, x, y, width, height, colour, "", edge=LINE)
        middle = x + width / 2
        ax.text(middle, y + height - 0.07, name, ha="center", va="top", size=8.5, weight="bold", color=INK, zorder=5)
        ax.text(middle, y + 0.25, what, ha="center", va="center", size=7, color=SOFT, zorder=5, linespacing=1.05)
    row = [name for name, place in boxes.items() if place[1] == top]
    for before, after in pairwise(row):
        arrow(ax, (boxes[before][0] + 1.78, top + height / 2), (boxes[after][0] - 0.03, top + height / 2))
    arrow(ax, (10.22, top + 0.15), (9.98, top + 0.15))
    arrow(ax, (4.07, top + 0.15), (3.83, top + 0.15))
    ax.text(3.95, top + height + 0.13, "replies decide later turns", ha="center", va="bottom", size=7, color=SOFT)
    arrow(ax, (9.07, top - 0.03), (9.07, bottom + height + 0.03), arrowstyle="<|-|>")
    ax.text(9.17, 1.3, "resume, replay", va="center", size=7, color=SOFT)
    arrow(ax, (6.9, top - 0.03), (6.5, bottom + height + 0.03))
    ax.text(6.78, 1.3, "texts", va="center", size=7, color=SOFT)
    arrow(ax, (5.7, bottom + height + 0.03), (5.2, top - 0.03), ls="--")
    ax.text(5.3, 1.3, "opinions that\na schedule uses", va="center", ha="right", size=7, color=SOFT)
    arrow(ax, (7.2, bottom + height + 0.03), (8.4, top - 0.03), ls="--")
    ax.text(7.72, 1.1, "judges", va="center", ha="left", size=7, color=SOFT)
    arrow(ax, (7.43, bottom + height / 2), (8.17, bottom + height / 2))
    ax.plot([9.07, 9.07, 3.7], [bottom - 0.03, bottom - 0.22, bottom - 0.22], color=SOFT, lw=1.3)
    arrow(ax, (3.7, bottom - 0.22), (3.7, bottom - 0.02))
    arrow(ax, (2.87, bottom + height / 2), (2.33, bottom + height / 2))
    for number, name in enumerate(("schedule", "engine", "caller", "instruments", "specification"), start=1):
        badge(ax, boxes[name][0], boxes[name][1] + height, number)
    badge(ax, boxes["slices"][0], boxes["slices"][1] + height, 5)
    ax.set(xlim=(-0.1, 12.1), ylim=(-0.2, 2.8))
    ax.axis("off")


def main() -> None:
    """Draw the pictures beside this file."""
    schedule = Dyads(steps=STEPS).schedule(Setting.of(N_AGENTS, SEED))
    turns = list(schedule.turns())
    length = critical_path(schedule).length
    graph = plt.figure(figsize=(7.2, 4.3), layout="constrained")
    rows = graph.subplots(2, 1, height_ratios=[0.5, 3.6])
    draw_sequence(rows[0], turns)
    draw_graph(rows[1], turns, length, len(turns))
    flow = plt.figure(figsize=(7.2, 2.2), layout="constrained")
    draw_flow(flow.subplots())
    for name, figure in (("architecture", flow), ("schedule", graph)):
        figure.savefig(Path(__file__).with_name(f"{name}.png"), dpi=170, metadata={"Software": "opinionsim"})


if __name__ == "__main__":
    main()
