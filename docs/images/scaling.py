"""Draws scaling_*.png and prints the tables of docs/scaling.md: depth, width, tokens, time and memory against N.

Run: python docs/images/scaling.py [--quick] [--update]
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

import opinionsim as osim
from opinionsim.engine import CriticalPath
from opinionsim.foundation.streams import stream
from opinionsim.llm import MemoryJournal
from opinionsim.memory import estimated_tokens
from opinionsim.networks import Neighbours, build_network
from opinionsim.registry import find

SIZES = (10, 100, 1000, 10_000, 100_000, 1_000_000)
QUICK = SIZES[:3]
#: Dyads a run has for each agent, T / N.
EXPOSURES = 10
#: How many schedules are drawn: single runs differ little where N is large.
REPLICATES = {10: 50, 100: 20, 1000: 5, 10_000: 3, 100_000: 1, 1_000_000: 1}
#: Networks as the package names them, with the largest N that is simulated; the star's depth is known to be T.
NETWORKS: Mapping[str, tuple[Callable[[int], Mapping[str, Any]], int]] = {
    "complete": (lambda n: {"kind": "complete"}, 1_000_000),
    "ring": (lambda n: {"kind": "ring"}, 1_000_000),
    "watts-strogatz": (lambda n: {"kind": "watts-strogatz", "k": 6, "p": 0.1}, 100_000),
    "erdos-renyi": (lambda n: {"kind": "erdos-renyi", "p": 6 / (n - 1)}, 100_000),
    "barabasi-albert": (lambda n: {"kind": "barabasi-albert", "m": 3}, 1_000_000),
    "star": (lambda n: {"kind": "star"}, 1000),
}
MEMORY_KINDS = ("cumulative", "reflective")

#: Tokens of a post, a report and a reflection of a talkative model; an example.
TALKATIVE = (60.0, 250.0, 150.0)
#: US dollars per million input and output tokens; examples.
PRICES = ((0.15, 0.60), (2.5, 10.0))
#: Calls in flight.
SLOTS = (64, 256, 1024, 10_000)
LATENCY_S = 1.0
#: Requests and tokens a minute that a provider may allow; examples.
REQUEST_LIMITS = (500, 10_000)
TOKEN_LIMITS = (200_000, 10_000_000)
#: Memory of a machine, bytes; an example.
MACHINE_BYTES = 16e9


@dataclass(frozen=True)
class Measured:
    """What benchmarks/scaling.py found on two cores, and the client's cost from a measurement beside it.

    Attributes
    ----------
    base_bytes, agent_bytes, call_bytes : float
        Resident memory of a process: a part that does not grow, and what an agent and a call add.
    stored_bytes : float
        What a call adds to a SQLite store, at T / N = 10.
    append_s : float
        Seconds to make one call durable in SQLite, 12 messages of prompt included.
    stack_s : float
        CPU seconds a call costs the package around a model that answers at once.
    engine_s : float
        Of these, the engine's own.
    client_s : float
        CPU seconds a call costs langchain-openai over aiohttp.
    """

    base_bytes: float = 160e6
    agent_bytes: float = 1.0e3
    call_bytes: float = 4.9e3
    stored_bytes: float = 3.3e3
    append_s: float = 0.11e-3
    stack_s: float = 1.4e-3
    engine_s: float = 25e-6
    client_s: float = 2.7e-3


MEASURED = Measured()

# -- calls ---------------------------------------------------------------------------------------------------


def in_flight(pairs: np.ndarray, n_agents: int, calls_per_event: int) -> np.ndarray:
    """Calls that start in each round when every call takes one round and starts as early as it can.

    The recursion of :func:`opinionsim.engine.critical_path` for dyads, without objects: a speaker is free
    once its post is written and remembered, a listener reviews once it is free and the post is there.
    """
    free = [0] * n_agents
    widths = np.zeros(1, dtype=np.int64)
    for begin in range(0, len(pairs), 1 << 16):
        starts: list[int] = []
        add = starts.append
        for speaker, listener in pairs[begin : begin + (1 << 16)].tolist():
            start = free[speaker]
            add(start)
            published = start + 1
            free[speaker] = published + calls_per_event
            start = free[listener]
            if start < published:
                start = published
            add(start)
            free[listener] = start + 1 + calls_per_event
        begun = np.bincount(starts, minlength=len(widths))
        begun[: len(widths)] += widths
        widths = begun
    replies = widths
    for after in range(1, calls_per_event + 1):
        widths = np.append(widths, 0)
        widths[after:] += replies
    return widths


class Drawn(NamedTuple):
    """A drawn schedule: its critical path by memory, and the turns of its busiest agent."""

    paths: dict[str, CriticalPath]
    busiest: int


def drawn(network: str, n_agents: int, replicate: int) -> Drawn:
    """Critical paths of one schedule of the package."""
    specification = NETWORKS[network][0](n_agents)
    seed = int(stream(1, "network", replicate, network, n_agents).integers(2**32))
    graph = n_agents if network == "complete" else build_network(specification, n_agents, seed)
    rng = stream(1, "schedule", replicate, network, n_agents)
    pairs = Neighbours(graph).draw_pairs(EXPOSURES * n_agents, rng).astype(np.int32)
    del graph
    paths = {}
    for memory in MEMORY_KINDS:
        widths = in_flight(pairs, n_agents, find("memory", memory).target.calls_per_event)
        paths[memory] = CriticalPath(len(widths), int(widths.sum()), int(widths.max()))
    return Drawn(paths, int(np.bincount(pairs.ravel()).max()))


class Shape(NamedTuple):
    """Means over drawn schedules."""

    depth: dict[str, float]
    peak: dict[str, float]
    busiest: float


def shape(network: str, n_agents: int) -> Shape:
    """Mean critical path, peak width and busiest agent of a network and size."""
    found = [drawn(network, n_agents, replicate) for replicate in range(REPLICATES[n_agents])]
    return Shape(
        {memory: float(np.mean([each.paths[memory].length for each in found])) for memory in MEMORY_KINDS},
        {memory: float(np.mean([each.paths[memory].peak_width for each in found])) for memory in MEMORY_KINDS},
        float(np.mean([each.busiest for each in found])),
    )


Shapes = Mapping[tuple[str, int], Shape]


def shapes(sizes: Sequence[int]) -> Shapes:
    """Shapes of all networks; large ones are spread over two processes."""
    jobs = [(network, n) for n in reversed(sizes) for network, (_, most) in NETWORKS.items() if n <= most]
    if max(sizes) <= max(QUICK):
        return {job: shape(*job) for job in jobs}
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        found = pool.map(shape, *zip(*jobs, strict=True))
        return dict(zip(jobs, found, strict=True))


def growth_rate(theta: float, calls_per_event: int) -> float:
    """Rate g at which the sum of exp(theta * depth) over agents grows with T / N on a regular network."""
    own = math.exp((1 + calls_per_event) * theta)
    return 2 * (own - 1) + math.exp((2 + calls_per_event) * theta)


def depth_bound(n_agents: int, steps: int, calls_per_event: int, odds: float = 0.01) -> float:
    """Depth that a schedule on a regular network exceeds with probability `odds` at most (Chernoff)."""

    def at(theta: float) -> float:
        total = math.log(n_agents / odds) + steps * math.log1p(growth_rate(theta, calls_per_event) / n_agents)
        return total / theta

    return min(map(at, np.geomspace(0.02, 5, 2000).tolist()))


def calls_in_all(n_agents: int, memory: str) -> int:
    """Calls of a run: a post and a review a dyad, and what remembering each takes."""
    return 2 * EXPOSURES * n_agents * (1 + find("memory", memory).target.calls_per_event)


# -- tokens --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PromptSizes:
    """Estimated tokens of what prompts are made of, means over a run.

    Attributes
    ----------
    system, write, review : float
        The system message and the two tasks; a review's holds the post.
    wrote, reviewed : float
        What the two acts leave in a cumulative memory.
    summary : float
        A reflection as it is remembered.
    first_request, request : float
        Wording of a request to reflect, without the event and the past summary it holds.
    post, report, reflection : float
        Replies.
    """

    system: float
    write: float
    review: float
    wrote: float
    reviewed: float
    summary: float
    first_request: float
    request: float
    post: float
    report: float
    reflection: float

    def with_replies(self, post: float, report: float, reflection: float) -> PromptSizes:
        """The same wording around replies of other lengths."""
        posts, reports, reflections = post - self.post, report - self.report, reflection - self.reflection
        return replace(
            self,
            review=self.review + posts,
            wrote=self.wrote + posts,
            reviewed=self.reviewed + posts + reports,
            summary=self.summary + reflections,
            post=post,
            report=report,
            reflection=reflection,
        )


class Tokens(NamedTuple):
    """Expected tokens of a run."""

    input: float
    output: float
    fresh: float
    """Input tokens no earlier prompt of the same agent begins with: what a perfect prefix cache leaves."""


def expected_tokens(
    sizes: PromptSizes, memory: str, n_agents: int, steps: int, concentration: float | None = None
) -> Tokens:
    """Expected tokens of a run of random dyads, in closed form.

    Parameters
    ----------
    sizes : PromptSizes
        Of messages and replies.
    memory : {"cumulative", "reflective"}
        What agents carry.
    n_agents, steps : int
        N and T.
    concentration : float, optional
        Sum of squared probabilities that an agent is the speaker of a step; default 1 / N, as on a regular
        network.

    Notes
    -----
    Exact for sizes that do not depend on the turn; the number of first turns is that of a regular network.
    """
    evenly = 1 / n_agents
    repeats = concentration if concentration is not None else evenly
    tasks = steps * (sizes.write + sizes.review)
    event = (sizes.wrote + sizes.reviewed) / 2
    first = n_agents * (1 - (1 - 2 * evenly) ** steps)
    later = 2 * steps - first
    replies = steps * (sizes.post + sizes.report)
    if memory == "cumulative":
        remembered = 2 * event * repeats * steps * (steps - 1)
        total = 2 * steps * sizes.system + tasks + remembered
        return Tokens(total, replies, first * sizes.system + tasks + later * event)
    asking = 2 * steps * sizes.system + tasks + later * sizes.summary
    reflecting = 2 * steps * (sizes.system + event)
    reflecting += first * sizes.first_request + later * (sizes.request + sizes.summary)
    # Of a prompt with a summary, only the system message stays the same.
    fresh = asking + reflecting - (4 * steps - first) * sizes.system
    return Tokens(asking + reflecting, replies + 2 * steps * sizes.reflection, fresh)


def prompts_of_a_run(memory: str, steps: int) -> list[Any]:
    """Journal entries, in order, of ten scripted agents; their prompts are those of the default pack."""
    journal = MemoryJournal()
    with osim.OpinionModel(
        topic="global-warming",
        schedule=steps,
        seed=1,
        cognition={"memory": memory},
        journal=journal,
        classifier=None,
    ) as model:
        model.run()
    return sorted(journal.records, key=lambda record: record.key)


@cache
def scripted_sizes(steps: int = 100) -> PromptSizes:
    """Sizes in runs of the scripted model with the default prompts."""
    found: dict[str, list[int]] = defaultdict(list)
    latest: dict[int, tuple[Any, ...]] = {}
    acts: dict[int, list[str]] = defaultdict(list)
    for record in prompts_of_a_run("cumulative", steps):
        system, *_, task = record.prompt
        found["system"].append(estimated_tokens(system.content))
        found[record.act].append(estimated_tokens(task.content))
        found["post" if record.act == "write" else "report"].append(estimated_tokens(record.text))
        latest[record.agent] = record.prompt[1:-1]
        acts[record.agent].append({"write": "wrote", "review": "reviewed"}[record.act])
    for agent, events in latest.items():
        for act, event in zip(acts[agent], events, strict=False):
            found[act].append(estimated_tokens(event.content))
    first_acts = set()
    for record in prompts_of_a_run("reflective", steps):
        if record.key.call == "reflect":
            kind = "whole_request" if record.agent in first_acts else "whole_first_request"
            found[kind].append(estimated_tokens(record.prompt[-1].content))
            found["reflection"].append(estimated_tokens(record.text))
            first_acts.add(record.agent)
        elif len(record.prompt) == 3:
            found["summary"].append(estimated_tokens(record.prompt[1].content))
    mean = {name: float(np.mean(values)) for name, values in found.items()}
    event = (mean["wrote"] + mean["reviewed"]) / 2
    mean["first_request"] = mean.pop("whole_first_request") - event
    mean["request"] = mean.pop("whole_request") - event - mean["summary"]
    return PromptSizes(**mean)


def money(tokens: Tokens, price: tuple[float, float]) -> float:
    """US dollars at a price per million input and output tokens."""
    return (tokens.input * price[0] + tokens.output * price[1]) / 1e6


# -- what binds ----------------------------------------------------------------------------------------------


def times(n_agents: int, memory: str, depth: float, slots: int, sizes: PromptSizes) -> dict[str, float]:
    """Seconds that each constraint alone allows a run to be finished in."""
    calls = calls_in_all(n_agents, memory)
    tokens = expected_tokens(sizes, memory, n_agents, EXPOSURES * n_agents)
    return {
        "critical path": depth * LATENCY_S,
        "slots": calls * LATENCY_S / slots,
        "one process's CPU": calls * (MEASURED.client_s + MEASURED.stack_s),
        "store": calls * MEASURED.append_s,
        "requests a minute": calls * 60 / REQUEST_LIMITS[-1],
        "tokens a minute": (tokens.input + tokens.output) * 60 / TOKEN_LIMITS[-1],
    }


def process_bytes(n_agents: int, memory: str) -> float:
    """Resident memory of the process that carries out a run, extrapolated."""
    calls = calls_in_all(n_agents, memory)
    return MEASURED.base_bytes + n_agents * MEASURED.agent_bytes + calls * MEASURED.call_bytes


def binding(n_agents: int, found: Mapping[str, float], constraints: Iterable[str]) -> str:
    """What binds first among some constraints; memory where the process does not fit the machine."""
    if process_bytes(n_agents, "cumulative") > MACHINE_BYTES:
        return "memory"
    return max(constraints, key=found.__getitem__)


# -- tables --------------------------------------------------------------------------------------------------


def number(value: float) -> str:
    """Three digits with a unit of thousands, millions or billions."""
    for unit, name in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e4, " k")):
        if value >= unit * 0.9995:
            return f"{value / (1e3 if name == ' k' else unit):.3g}{name}"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def duration(seconds: float) -> str:
    """Seconds, minutes, hours or days."""
    for unit, name in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds:.3g} s"


def dollars(value: float) -> str:
    """An amount in US dollars."""
    return f"${value:,.0f}" if value >= 100 else f"${value:.2g}" if value < 0.1 else f"${value:.2f}"


def gigabytes(value: float) -> str:
    """Bytes as MB or GB."""
    return f"{value / 1e9:.3g} GB" if value >= 1e9 else f"{value / 1e6:.3g} MB"


Table = list[list[str]]


def depth_table(found: Shapes, sizes: Sequence[int], memory: str) -> Table:
    """Depth and speed-up by network."""
    rows = [["N", *NETWORKS]]
    for n in sizes:
        cells = []
        for network in NETWORKS:
            if (network, n) in found:
                depth = found[network, n].depth[memory]
                cells.append(f"{number(depth)} ({number(calls_in_all(n, memory) / depth)})")
            else:
                cells.append("-")
        rows.append([f"{n:,}", *cells])
    return rows


def complete_table(found: Shapes, sizes: Sequence[int]) -> Table:
    """Calls, depth, its bound and widths on the complete graph."""
    rows = [["N", "T", "memory", "calls", "depth", "bound", "mean width", "peak width", "mean width / N"]]
    for n in sizes:
        for memory in MEMORY_KINDS:
            at = found["complete", n]
            depth, calls = at.depth[memory], calls_in_all(n, memory)
            bound = depth_bound(n, EXPOSURES * n, find("memory", memory).target.calls_per_event)
            width = calls / depth
            cells = [number(calls), f"{depth:.1f}", f"{bound:.0f}", number(width), number(at.peak[memory])]
            rows.append([f"{n:,}", number(EXPOSURES * n), memory, *cells, f"{width / n:.3f}"])
    return rows


def growth_table(found: Shapes) -> Table:
    """Fitted laws of depth for N >= 100."""
    rows = [["network", *(f"depth, {memory}" for memory in MEMORY_KINDS), "law"]]
    for network in NETWORKS:
        sizes = [n for name, n in found if name == network and n >= 100]
        if network == "star" or len(sizes) < 3:
            continue
        x = np.log10(sizes)
        cells = []
        for memory in MEMORY_KINDS:
            y = np.array([found[network, n].depth[memory] for n in sizes])
            if network == "barabasi-albert":
                slope, level = np.polyfit(x, np.log10(y), 1)
                cells.append(f"{10**level:.1f} N^{slope:.2f}")
            else:
                slope, level = np.polyfit(x, y, 1)
                off = np.abs(level + slope * x - y).max()
                cells.append(f"{level:.1f} + {slope:.1f} log₁₀ N (± {off:.1f})")
        rows.append([network, *cells, "power" if network == "barabasi-albert" else "logarithm"])
    rows.append(["star", "T", "2 T", "the centre's own calls"])
    return rows


def size_table() -> Table:
    """Sizes of the parts of prompts."""
    scripted = scripted_sizes()
    talkative = scripted.with_replies(*TALKATIVE)
    rows = [["part", "scripted replies", "longer replies"]]
    for name in PromptSizes.__dataclass_fields__:
        rows.append([f"`{name}`", f"{getattr(scripted, name):.0f}", f"{getattr(talkative, name):.0f}"])
    return rows


def token_table(sizes: Sequence[int], memory: str) -> Table:
    """Tokens and money of a run."""
    scripted = scripted_sizes()
    talkative = scripted.with_replies(*TALKATIVE)
    rows = [["N", "calls", "input", "output", "longer: input", "output", "in earlier prompts"]]
    rows[0] += [f"at ${price[0]:g} / ${price[1]:g}" for price in PRICES]
    for n in sizes:
        few, many = (expected_tokens(each, memory, n, EXPOSURES * n) for each in (scripted, talkative))
        shown = [calls_in_all(n, memory), few.input, few.output, many.input, many.output]
        cached = f"{100 * (1 - many.fresh / many.input):.0f} %"
        rows.append([f"{n:,}", *map(number, shown), cached, *(dollars(money(many, price)) for price in PRICES)])
    return rows


def prompt_table(found: Shapes, sizes: Sequence[int]) -> Table:
    """The longest prompt of a run, by network."""
    each = scripted_sizes().with_replies(*TALKATIVE)
    networks = ("complete", "ring", "barabasi-albert", "star")
    rows = [["N", *networks]]
    for n in sizes:
        cells = []
        for network in networks:
            at = found.get((network, n))
            turns = at.busiest if at is not None else EXPOSURES * n
            tokens = each.system + each.review + turns * (each.wrote + each.reviewed) / 2
            cells.append(f"{number(turns)} turns, {number(tokens)} tokens")
        rows.append([f"{n:,}", *cells])
    return rows


def slot_table(found: Shapes, sizes: Sequence[int]) -> Table:
    """Lower bounds of the time of a run by slots, cumulative memory on the complete graph."""
    rows = [["N", "calls", "critical path", *(f"{slots:,} slots" for slots in SLOTS), "one process's CPU"]]
    for n in sizes:
        calls, depth = calls_in_all(n, "cumulative"), found["complete", n].depth["cumulative"]
        waits = [duration(LATENCY_S * max(depth, calls / slots)) for slots in SLOTS]
        busy = duration(calls * (MEASURED.client_s + MEASURED.stack_s))
        rows.append([f"{n:,}", number(calls), duration(LATENCY_S * depth), *waits, busy])
    return rows


def limit_table(sizes: Sequence[int]) -> Table:
    """Time of a run under provider limits, cumulative memory with longer replies."""
    each = scripted_sizes().with_replies(*TALKATIVE)
    heads = [f"{limit:,} requests/min" for limit in REQUEST_LIMITS]
    heads += [f"{limit / 1e6:g} M tokens/min" for limit in TOKEN_LIMITS]
    rows = [["N", *heads]]
    for n in sizes:
        calls = calls_in_all(n, "cumulative")
        tokens = expected_tokens(each, "cumulative", n, EXPOSURES * n)
        waits = [calls * 60 / limit for limit in REQUEST_LIMITS]
        waits += [(tokens.input + tokens.output) * 60 / limit for limit in TOKEN_LIMITS]
        rows.append([f"{n:,}", *map(duration, waits)])
    return rows


def resource_table(sizes: Sequence[int]) -> Table:
    """Memory, disk and CPU of a run, extrapolated from measurements."""
    rows = [["N", "calls", "process memory", "SQLite store", "time in the store", "CPU: package", "of it engine"]]
    rows[0].append("CPU: client")
    for n in sizes:
        calls = calls_in_all(n, "cumulative")
        each = (MEASURED.append_s, MEASURED.stack_s, MEASURED.engine_s, MEASURED.client_s)
        spaces = (process_bytes(n, "cumulative"), calls * MEASURED.stored_bytes)
        busy = [duration(calls * seconds) for seconds in each]
        rows.append([f"{n:,}", number(calls), *map(gigabytes, spaces), *busy])
    return rows


def binding_table(found: Shapes, sizes: Sequence[int]) -> Table:
    """What binds first on a server of one's own and at a provider, cumulative memory on the complete graph."""
    each = scripted_sizes().with_replies(*TALKATIVE)
    own = ("critical path", "slots", "one process's CPU", "store")
    hosted = (*own, "requests a minute", "tokens a minute")
    rows = [["N", "calls", "memory", "own server: binds", "time", "provider: binds", "time", "money"]]
    for n in sizes:
        depth = found["complete", n].depth["cumulative"]
        waits = times(n, "cumulative", depth, 256, each)
        cost = money(expected_tokens(each, "cumulative", n, EXPOSURES * n), PRICES[0])
        cells = []
        for constraints in (own, hosted):
            cells += [binding(n, waits, constraints), duration(max(waits[name] for name in constraints))]
        size = gigabytes(process_bytes(n, "cumulative"))
        rows.append([f"{n:,}", number(calls_in_all(n, "cumulative")), size, *cells, dollars(cost)])
    return rows


def tables(found: Shapes, sizes: Sequence[int]) -> dict[str, Table]:
    """All tables by name; the fitted laws only where there are enough sizes to fit."""
    made = {
        "depth cumulative": depth_table(found, sizes, "cumulative"),
        "depth reflective": depth_table(found, sizes, "reflective"),
        "complete": complete_table(found, sizes),
        "sizes": size_table(),
        "tokens cumulative": token_table(sizes, "cumulative"),
        "tokens reflective": token_table(sizes, "reflective"),
        "longest prompt": prompt_table(found, sizes),
        "slots": slot_table(found, sizes),
        "limits": limit_table(sizes),
        "resources": resource_table(sizes),
        "binding": binding_table(found, sizes),
    }
    return made if max(sizes) <= max(QUICK) else {**made, "growth": growth_table(found)}


def markdown(table: Table) -> str:
    """A table in Markdown."""
    head, *rows = table
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows])


def updated(page: str, made: Mapping[str, Table]) -> str:
    """A page with the tables that follow their marks replaced."""
    for name, table in made.items():
        mark = f"<!-- table: {name} -->\n"
        if page.count(mark) != 1:
            raise SystemExit(f"the page has {page.count(mark)} marks for table {name!r}; one is expected")
        before, _, after = page.partition(mark)
        rest = re.sub(r"^([|].*\n)*", "", after)
        page = f"{before}{mark}{markdown(table)}\n{rest}"
    return page


# -- figures -------------------------------------------------------------------------------------------------

INK, SOFT, LINE = "#22313a", "#5f717c", "#c9d3d9"
COLOURS = {
    "complete": "#22313a",
    "ring": "#2f7fb5",
    "watts-strogatz": "#5aa469",
    "erdos-renyi": "#c98a1b",
    "barabasi-albert": "#b5485d",
    "star": "#7b5ea7",
}


def plain(ax: Any, title: str, x: str, y: str) -> None:
    """Labels, and no more lines than needed."""
    ax.set_title(title, loc="left", size=11, color=INK)
    ax.set_xlabel(x, color=SOFT)
    ax.set_ylabel(y, color=SOFT)
    ax.grid(color=LINE, lw=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def draw_by_network(found: Shapes, value: Callable[[int, str, float], float], what: str, y: str) -> Figure:
    """One panel a memory, one line a network."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 5), sharey=True, layout="constrained")
    for ax, memory in zip(axes, MEMORY_KINDS, strict=True):
        for network, colour in COLOURS.items():
            sizes = sorted(n for name, n in found if name == network)
            values = [value(n, memory, found[network, n].depth[memory]) for n in sizes]
            ax.loglog(sizes, values, color=colour, marker="o", ms=4, lw=1.6, label=network)
        plain(ax, f"{what}, {memory} memory", "agents N", y if memory == MEMORY_KINDS[0] else "")
    return figure


def add_legend(figure: Figure) -> None:
    """One legend for all panels, below them, clear of the lines."""
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=7, frameon=False)


def draw_depth(found: Shapes) -> Figure:
    """Depth against N."""
    figure = draw_by_network(found, lambda n, memory, depth: depth, "Depth", "longest chain of calls")
    sizes = sorted(n for name, n in found if name == "complete")
    for ax, memory in zip(figure.axes, MEMORY_KINDS, strict=True):
        bounds = [depth_bound(n, EXPOSURES * n, find("memory", memory).target.calls_per_event) for n in sizes]
        ax.plot(sizes, bounds, color=SOFT, lw=1, ls=":", label="99 % bound (regular)")
    add_legend(figure)
    return figure


def draw_width(found: Shapes) -> Figure:
    """Mean width against N, with where slots bind."""
    figure = draw_by_network(
        found,
        lambda n, memory, depth: calls_in_all(n, memory) / depth,
        "Width",
        "mean width = largest speed-up",
    )
    for ax in figure.axes:
        for slots in SLOTS:
            ax.axhline(slots, color=SOFT, lw=0.8, ls=":")
            ax.text(8, slots, f"{slots:,} slots", ha="left", va="bottom", size=8, color=SOFT)
    add_legend(figure)
    return figure


def draw_tokens() -> Figure:
    """Input tokens an agent against T / N: cumulative grows with the square, reflective in proportion."""
    n = 1000
    exposures = np.arange(1, 101)
    scripted = scripted_sizes()
    longer = scripted.with_replies(*TALKATIVE)
    figure, ax = plt.subplots(figsize=(7, 4.6), layout="constrained")
    for label, sizes, dashes in (("longer", longer, "--"), ("scripted", scripted, "-")):
        for memory, colour in zip(MEMORY_KINDS, ("#b5485d", "#2f7fb5"), strict=True):
            tokens = [expected_tokens(sizes, memory, n, int(n * each)).input / n for each in exposures]
            ax.loglog(exposures, tokens, color=colour, ls=dashes, lw=1.8, label=f"{memory}, {label} replies")
    fresh = [expected_tokens(longer, "cumulative", n, int(n * each)).fresh / n for each in exposures]
    ax.loglog(exposures, fresh, color=SOFT, ls=":", lw=1.8, label="cumulative, longer, perfect prefix cache")
    plain(ax, "Input tokens an agent", "dyads an agent, T / N", "input tokens / N")
    ax.legend(frameon=False, fontsize=9)
    return figure


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables; in full, also draw the figures beside this file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="N up to 1000, no figures and no fitted laws")
    parser.add_argument("--update", action="store_true", help="also write the tables into docs/scaling.md")
    options = parser.parse_args(arguments)
    if options.quick and options.update:
        parser.error("--update needs all sizes; leave --quick out")
    sizes = QUICK if options.quick else SIZES
    found = shapes(sizes)
    made = tables(found, sizes)
    for name, table in made.items():
        sys.stdout.write(f"{name}\n\n{markdown(table)}\n\n")
    if options.quick:
        return
    here = Path(__file__).resolve().parent
    figures = {"depth": draw_depth(found), "width": draw_width(found), "tokens": draw_tokens()}
    for name, figure in figures.items():
        figure.savefig(here / f"scaling_{name}.png", dpi=110, metadata={"Software": "opinionsim"})
    if options.update:
        page = here.parent / "scaling.md"
        page.write_text(updated(page.read_text(encoding="utf-8"), made), encoding="utf-8")


if __name__ == "__main__":
    main()
