"""Draws half_price_frontier.png and prints its table: how long a study takes in a batch queue, and what it costs.

A simulation, not a measurement: nobody's queue was asked. Calls and what each waits for are those of the package's own
schedules; every batch takes a time drawn from one distribution. Run: python docs/images/half_price_frontier.py
[--quick]
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import opinionsim as osim
from opinionsim.assembly import assemble
from opinionsim.drawing import INK, LINES
from opinionsim.engine import critical_path
from opinionsim.foundation.streams import stream
from opinionsim.schedules import StaticSchedule

RUNS, AGENTS, STEPS = 40, 10, 100
#: Minutes that half and nine tenths of all batches take, by a provider's own statement, and after which a batch ends in
#: any case, with its replies.
MEDIAN, SLOW, LONGEST = 7.0, 60.0, 24 * 60.0
#: Standard deviation of the logarithm of these minutes; the divisor is the normal distribution's 90 % point.
SPREAD = math.log(SLOW / MEDIAN) / 1.2815515655446004
#: Minutes that a batch takes to end after it was cancelled; OpenAI states at most 10.
CANCELLING = 5.0
#: Price of a call in a batch, as a share of the list price.
FACTOR = 0.5
#: How many times a study is simulated.
DRAWS = 2000


class Option(NamedTuple):
    """A way to use the queue."""

    name: str
    tail: int = 0
    """Fewer calls than these are bought at once."""
    patience: float = math.inf
    """Minutes after which a batch is cancelled."""
    at_once: bool = False
    """Whether what a cancelled batch leaves is bought at once, and not through the next batch."""
    stuck: float = 0.0
    """Share of batches of which nothing is done until they end."""
    waves: int = 1
    """Parts of the study that take no notice of each other."""
    alike: float = 0.0
    """Correlation between the logarithms of the times of two batches that follow each other."""


#: The rows of the table.
OPTIONS = (
    Option("no tail"),
    Option("`tail: 20`", 20),
    Option("`tail: 80`", 80),
    Option("`tail: 160`", 160),
    Option("`patience_s: 1800`", patience=30),
    Option("`patience_s: 1800`, `tail: 20`", 20, 30),
    Option("`patience_s: 3600`, `tail: 20`", 20, 60),
    Option("30 min of patience, rest at once, tail 20 *", 20, 30, at_once=True),
    Option("1 % of batches stuck", stuck=0.01),
    Option("1 % stuck, `patience_s: 1800`, `tail: 20`", 20, 30, stuck=0.01),
    Option("1 % stuck, `patience_s: 3600`, `tail: 20`", 20, 60, stuck=0.01),
    Option("1 % stuck, 60 min of patience, rest at once, tail 20 *", 20, 60, at_once=True, stuck=0.01),
    Option("slow times (correlation 0.8), `tail: 20`", 20, alike=0.8),
    Option("slow times, `patience_s: 1800`, `tail: 20`", 20, 30, alike=0.8),
    *(Option(f"{waves} waves *", waves=waves) for waves in (2, 4, 8)),
)
#: Panels of the figure: shares of batches that are stuck.
PANELS = {"All batches end in time": 0.0, "1 batch in 100 is stuck for 24 hours": 0.01}
#: Tails along the lines of the figure, and which of them have marks.
TAILS = (0, 20, 80, 110, 120, 130, 140, 150, 160, 170, 180, 200, 320)
MARKED = {0: "no tail", 20: "tail 20", 80: "80", 160: "160"}
#: Lines of the figure: minutes of patience, with name, colour, mark, and the places of the names of its marks.
LINED = {
    math.inf: ("no patience", "#D55E00", "o", ("right center", "right top", "center top", "left bottom")),
    30.0: ("30 minutes of patience", "#009E73", "s", ("right bottom", "right top", "center top", "center top")),
}
#: How often each point of a line is simulated.
LINE_DRAWS = 600


class Graph(NamedTuple):
    """Calls of runs: how many others each waits for, and which ones wait for it."""

    waits_for: list[int]
    readers: list[list[int]]


class Outcome(NamedTuple):
    """What simulations of an option come to."""

    rounds: float
    hours: float
    slow: float
    """Hours that nine of ten studies do not exceed."""
    money: float
    """Share of the list price."""


def graphs() -> list[Graph]:
    """The calls of all runs, from schedules of the package."""
    experiment = osim.load_experiment(
        {
            "name": "frontier",
            "seed": 1,
            "replicates": RUNS,
            "population": {"size": AGENTS},
            "topic": {"name": "flat-earth"},
            "interaction": {"kind": "dyadic", "steps": STEPS},
        }
    )
    found = []
    for run in experiment.runs:
        schedule = cast("StaticSchedule", assemble(run, experiment.resources).schedule)
        graph, last, depths = Graph([], []), dict[int, int](), list[int]()
        for turn in schedule.turns():
            before = {each for each in (*turn.reads, last.get(turn.agent)) if isinstance(each, int)}
            last[turn.agent] = turn.index
            for each in before:
                graph.readers[each].append(turn.index)
            graph.waits_for.append(len(before))
            graph.readers.append([])
            depths.append(1 + max((depths[each] for each in before), default=0))
        if max(depths) != critical_path(schedule).length:
            raise SystemExit("the calls wait for others than the package has them wait for")
        found.append(graph)
    return found


def together(parts: Sequence[Graph]) -> Graph:
    """Several runs as one graph."""
    whole = Graph([], [])
    for part in parts:
        begin = len(whole.waits_for)
        whole.waits_for.extend(part.waits_for)
        whole.readers.extend([begin + reader for reader in readers] for readers in part.readers)
    return whole


def simulate(graph: Graph, option: Option, rng: np.random.Generator) -> tuple[int, float, int]:
    """Rounds, hours, and calls that are bought at once, which take no time here."""
    waits_for = list(graph.waits_for)

    def after(done: Sequence[int]) -> list[int]:
        free = []
        for call in done:
            for reader in graph.readers[call]:
                waits_for[reader] -= 1
                if not waits_for[reader]:
                    free.append(reader)
        return free

    ready = [call for call, others in enumerate(waits_for) if not others]
    rounds, minutes, at_once, deviate = 0, 0.0, 0, rng.standard_normal()
    while ready:
        if len(ready) < option.tail:
            at_once += len(ready)
            ready = after(ready)
            continue
        rounds += 1
        deviate = option.alike * deviate + math.sqrt(1 - option.alike**2) * rng.standard_normal()
        takes, stuck = min(MEDIAN * math.exp(SPREAD * deviate), LONGEST), rng.random() < option.stuck
        takes = LONGEST if stuck else takes
        if takes <= option.patience:
            minutes += takes
            ready = after(ready)
            continue
        minutes += option.patience + CANCELLING
        # Calls get done evenly over the time of a batch, in any order.
        n_done = 0 if stuck else int(len(ready) * option.patience / takes)
        rng.shuffle(ready)
        done, rest = ready[:n_done], ready[n_done:]
        at_once += len(rest) * option.at_once
        ready = after(ready) if option.at_once else rest + after(done)
    return rounds, minutes / 60, at_once


def outcome(runs: Sequence[Graph], option: Option, draws: int) -> Outcome:
    """Means over many studies, each with other times of its batches."""
    waves = [together(runs[wave :: option.waves]) for wave in range(option.waves)]
    n_calls = sum(len(wave.waits_for) for wave in waves)
    rounds, hours, money = np.zeros(draws), np.zeros(draws), np.zeros(draws)
    for draw in range(draws):
        # Options are compared under the same draws.
        found = [simulate(wave, option, stream(1, "frontier", draw, place)) for place, wave in enumerate(waves)]
        rounds[draw] = sum(each[0] for each in found) / option.waves
        hours[draw] = max(each[1] for each in found)
        money[draw] = FACTOR + (1 - FACTOR) * sum(each[2] for each in found) / n_calls
    return Outcome(rounds.mean(), hours.mean(), float(np.quantile(hours, 0.9)), money.mean())


def table(runs: Sequence[Graph], draws: int) -> str:
    """The options in Markdown."""
    lines = ["| Option | Rounds | Hours, mean (90 %) | Money |", "|---|---|---|---|"]
    for option in OPTIONS:
        found = outcome(runs, option, draws)
        hours = f"{found.hours:.1f} ({found.slow:.0f})"
        lines.append(f"| {option.name} | {found.rounds:.0f} | {hours} | {found.money:.3f} |")
    return "\n".join(lines)


def draw_line(ax: Axes, runs: Sequence[Graph], patience: float, stuck: float) -> None:
    """Hours against money for several tails: the mean, and above it the 90 % point."""
    label, colour, mark, places = LINED[patience]
    found = [outcome(runs, Option("", tail, patience, stuck=stuck), LINE_DRAWS) for tail in TAILS]
    money, hours, slow = np.array([(each.money, each.hours, each.slow) for each in found]).T
    ax.fill_between(money, hours, slow, color=colour, alpha=0.15, linewidth=0)
    ax.plot(money, slow, color=colour, linewidth=0.8, linestyle=LINES[2])
    marked = [TAILS.index(tail) for tail in MARKED]
    ax.plot(money, hours, color=colour, linewidth=1.4, marker=mark, markersize=4.5, markevery=marked, label=label)
    for name, index, place in zip(MARKED.values(), marked, places, strict=True):
        name_mark(ax, (money[index], hours[index]), name, colour, place)


def name_mark(ax: Axes, at: tuple[float, float], name: str, colour: str, place: str) -> None:
    """Write a name beside a mark or below it; `place` says how it is aligned, across and down."""
    across, down = place.split()
    shift = ({"left": 5, "right": -5, "center": 0}[across], -4 if across == "center" else 0)
    ax.annotate(name, at, shift, textcoords="offset points", fontsize=7, color=colour, ha=across, va=down)


def draw(runs: Sequence[Graph]) -> Figure:
    """The figure of docs/half_price.md."""
    figure = Figure(figsize=(174 / 25.4, 4.3), layout="constrained")
    panels = figure.subplots(1, len(PANELS), sharey=True)
    for ax, (title, stuck) in zip(panels, PANELS.items(), strict=True):
        for patience in LINED:
            draw_line(ax, runs, patience, stuck)
        found = outcome(runs, Option("", 20, 30, at_once=True, stuck=stuck), LINE_DRAWS)
        look = {"color": INK, "marker": "D", "markersize": 4.5, "markerfacecolor": "none", "linestyle": ""}
        ax.plot(found.money, found.hours, label="30 minutes, then the rest at once; tail 20", **look)
        ax.plot(1, 0, "*", color="black", markersize=8, clip_on=False, label="all at once")
        ax.set_title(title, loc="left", fontsize=8)
        ax.set_xlabel("money, share of the list price", fontsize=8)
        ax.tick_params(labelsize=7)
        ax.spines[["top", "right"]].set_visible(False)
        ax.set_xlim(0.37, 1.02)
        ax.set_xticks(np.arange(0.5, 1.05, 0.1))
        ax.set_ylim(0, 80)
    for option in OPTIONS:
        if option.waves > 1:
            found = outcome(runs, option, LINE_DRAWS)
            panels[0].plot(found.money, found.hours, "x", color=INK, markersize=4.5)
            name_mark(panels[0], (found.money, found.hours), f"{option.waves} waves", INK, "right center")
    panels[0].set_ylabel("hours until a study is complete", fontsize=8)
    marks = panels[0].get_legend_handles_labels()
    figure.legend(*marks, loc="outside lower left", ncols=4, frameon=False, fontsize=7)
    said = (
        f"Simulated: {RUNS} runs, N = {AGENTS}, T = {STEPS}. Half of all batches take up to {MEDIAN:.0f} minutes, "
        f"90% up to {SLOW:.0f}.\nLines: mean of a study. Dotted: 90% of studies take no longer."
    )
    figure.suptitle(said, fontsize=8, x=0.01, ha="left")
    return figure


def main() -> None:
    """Print the table, and draw the picture beside this file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the simulations, and no picture")
    quick = parser.parse_args().quick
    runs = graphs()
    sys.stdout.write(table(runs, DRAWS // 10 if quick else DRAWS) + "\n")
    if not quick:
        osim.plots.save(draw(runs), Path(__file__).with_suffix(".png"), dpi=150)


if __name__ == "__main__":
    main()
