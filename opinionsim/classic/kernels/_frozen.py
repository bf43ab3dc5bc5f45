"""Exact criteria by which no cluster of opinions can change any more."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from opinionsim.classic.kernels._contacts import Variant, topology
from opinionsim.classic.kernels._stepping import Stop
from opinionsim.classic.kernels._until import CONSENSUS, one_number
from opinionsim.compilation import at, inlined
from opinionsim.errors import SpecError

if TYPE_CHECKING:
    from opinionsim.classic.kernels._process import Setup

#: Cells of the width of one confidence that a range may be divided into.
_MOST_CELLS = 2**22
#: Agents that are looked at first, and agents that are remembered for having shown that a run goes on.
_FIRST, _SHOWN = 64, 64

#: The criteria of bounded confidence in words.
BOUNDED_CONFIDENCE = (
    "no cluster can split or meet another. On the complete graph with one confidence for all: opinions, sorted and "
    "split where two in a row are farther apart than the confidence, are in blocks no wider than it, which can but "
    "shrink. Otherwise, in the components of the ties within reach: no component is wider than the confidence by which "
    "a tie of it is within reach, and no tie between two components is within reach of the range that both take up."
)
#: The criterion of copying in words.
NO_DISCORD = "no agent that can change hears another opinion than its own."


def bounded_confidence(setup: Setup) -> Stop:
    """The criterion of models in which two agents move closer if they are within confidence."""
    variant = setup.variant()
    require_approach(setup)
    if not variant.complete or "epsilon" in variant.own:
        return Stop(_ties_at_rest(variant), _components, dear=True)
    if not setup.parameters["epsilon"]:
        return Stop(_at_once, one_number)
    cells = (setup.range[1] - setup.range[0]) / max(float(setup.p.epsilon), 1e-300)
    if cells > _MOST_CELLS:
        least = (setup.range[1] - setup.range[0]) / _MOST_CELLS
        raise SpecError(
            f"until: frozen takes an epsilon of 0, or of at least {least:.2g} on this range; got "
            f"{setup.parameters['epsilon']:g}"
        )
    return Stop(_blocks_at_rest, _cells, dear=True)


def require_approach(setup: Setup) -> None:
    """Refuse a step so large that two agents who meet exchange their opinions in place of coming closer.

    Raises
    ------
    SpecError
        If all agents do so.
    """
    both = setup.scheme.get("sides", "two") == "two"
    if both and np.all(np.asarray(setup.p.mu) >= 1):
        raise SpecError(
            "until: frozen cannot come where mu is 1 and both change: agents exchange opinions, and clusters stay as "
            "they are"
        )


@inlined
def _at_once(opinions, previous, contacts, p, timing, memory):
    """Where none but equal opinions meet, nothing can change."""
    return -1


@inlined
def _cells(opinions, contacts, p):
    """The ends of opinions in each cell and their places in the order in which agents are looked at, and the frame."""
    low, high = opinions[0], opinions[0]
    for agent in range(opinions.size):
        low, high = min(low, opinions[agent]), max(high, opinions[agent])
    # A little narrower than the confidence, so that all in a cell are within it.
    width = max(0.999 * p.epsilon, (high - low) / _MOST_CELLS)
    count = np.int64((high - low) / width) + 1 if width > 0.0 else np.int64(1)
    order, frame = np.empty(opinions.size, dtype=np.int64), np.empty(2)
    for agent in range(opinions.size):
        order[agent] = agent
    frame[0], frame[1] = low, 1.0 / width if width > 0.0 else 0.0
    return np.empty(count), np.empty(count), np.empty(2 * count, dtype=np.int64), order, frame


@inlined
def _cell(opinion, frame, count):
    return min(max(np.int64((opinion - frame[0]) * frame[1]), 0), count - 1)


@inlined
def _wide_block(lows, highs, epsilon, width):
    """The first and last cell of a block that is wider than the confidence, or than `width`; the last is -1 if none."""
    first, start, end = np.int64(0), np.inf, -np.inf
    for cell in range(lows.size):
        if lows[cell] <= highs[cell]:
            if not lows[cell] - end < epsilon:
                first, start = np.int64(cell), lows[cell]
            end = highs[cell]
            if not end - start < epsilon or end - start > width:
                return first, np.int64(cell)
    return first, np.int64(-1)


@inlined
def _blocks_at_rest(opinions, previous, contacts, p, timing, memory):
    """Look at ever more agents until some of them make a block too wide; blocks of more agents are no narrower."""
    lows, highs, ends, order, frame = memory
    for cell in range(lows.size):
        lows[cell], highs[cell] = np.inf, -np.inf
    done, part, cost = 0, max(_FIRST, lows.size), lows.size
    while done < order.size:
        end = min(order.size, done + part)
        for place in range(done, end):
            opinion = opinions[order[place]]
            cell = _cell(opinion, frame, lows.size)
            if opinion < lows[cell]:
                lows[cell], ends[2 * cell] = opinion, place
            if opinion > highs[cell]:
                highs[cell], ends[2 * cell + 1] = opinion, place
        cost += end - done + lows.size
        first, last = _wide_block(lows, highs, p.epsilon, timing.tolerance)
        if last >= 0:
            if done > 0:
                _bring_forward(order, ends, lows, highs, first, last)
            return cost
        done, part = end, 4 * part
    return -1


@inlined
def _bring_forward(order, ends, lows, highs, first, last):
    """Have the agents at the ends of the cells of a wide block looked at first from now on."""
    front = 0
    for cell in range(first, last + 1):
        for side in range(2):
            if lows[cell] <= highs[cell] and front < _SHOWN:
                place = ends[2 * cell + side]
                order[front], order[place] = order[place], order[front]
                front += 1


@inlined
def _components(opinions, contacts, p):
    """Parent, ends and least confidence of each component, and the agent at which the next check begins."""
    n = opinions.size
    return np.empty(n, dtype=np.int64), np.empty(n), np.empty(n), np.empty(n), np.zeros(1, dtype=np.int64)


@inlined
def root(parents, agent):
    """The agent at the root of the tree of another, with `parents` (N,) brought nearer to it."""
    while parents[agent] != agent:
        parents[agent] = parents[parents[agent]]
        agent = parents[agent]
    return agent


def _ties_at_rest(variant: Variant) -> Callable[..., Any]:
    reach, partner, _ = topology(variant)
    weighted = variant.weighted

    def check(opinions, previous, contacts, p, timing, memory):
        parents, lows, highs, least, begin = memory
        n = opinions.size
        cost = n >> 2
        for agent in range(n):
            parents[agent], lows[agent], highs[agent], least[agent] = agent, opinions[agent], opinions[agent], np.inf
        for looked in range(n):
            agent = (begin[0] + looked) % n
            epsilon = at(p.epsilon, agent)
            count, one = reach(contacts, agent), root(parents, agent)
            cost += 2 * count
            for place in range(count):
                other = partner(contacts, agent, place)
                if weighted and contacts.weights[contacts.starts[agent] + place] <= 0.0:
                    continue
                if not abs(opinions[other] - opinions[agent]) < epsilon:
                    continue
                two = parents[other] if parents[other] == one else root(parents, other)
                if one == two and least[one] <= epsilon:
                    continue
                parents[two] = one
                lows[one], highs[one] = min(lows[one], lows[two]), max(highs[one], highs[two])
                least[one] = min(min(least[one], least[two]), epsilon)
                width = highs[one] - lows[one]
                if not width < least[one] or width > timing.tolerance:
                    begin[0] = agent
                    return cost
        for agent in range(n):
            parents[agent] = root(parents, agent)
        for agent in range(n):
            epsilon = at(p.epsilon, agent)
            one = parents[agent]
            count = reach(contacts, agent)
            cost += count
            for place in range(count):
                if weighted and contacts.weights[contacts.starts[agent] + place] <= 0.0:
                    continue
                two = parents[partner(contacts, agent, place)]
                if one != two and max(lows[one] - highs[two], lows[two] - highs[one]) < epsilon:
                    return cost
        return -1

    return inlined(check)


def no_discord(setup: Setup) -> Stop:
    """The criterion of models in which agents copy: nobody that can change hears another opinion."""
    variant = setup.variant()
    if variant.complete and "zealot" not in variant.own:
        return CONSENSUS
    reach, partner, _ = topology(variant)
    weighted = variant.weighted

    def check(opinions, previous, contacts, p, timing, memory):
        n, cost = contacts.n, 1
        for looked in range(n):
            agent = (memory[0] + looked) % n
            if at(p.zealot, agent) == 1:
                continue
            for place in range(reach(contacts, agent)):
                cost += 1
                if opinions[partner(contacts, agent, place)] == opinions[agent]:
                    continue
                if weighted and contacts.weights[contacts.starts[agent] + place] <= 0.0:
                    continue
                memory[0] = agent
                return cost
        return -1

    return Stop(inlined(check), one_number, dear=True)


def counted(variant: Variant) -> Callable[..., Any]:
    """``count(opinions, contacts, agent)``: how many whom an agent hears there are, and how many of the upper end."""
    reach, partner, _ = topology(variant)
    weighted = variant.weighted

    def count(opinions, contacts, agent):
        known, high = 0, 0
        for place in range(reach(contacts, agent)):
            if weighted and contacts.weights[contacts.starts[agent] + place] <= 0.0:
                continue
            known += 1
            high += np.int64(opinions[partner(contacts, agent, place)] > 0.5)  # type: ignore[assignment]
        return known, high

    return inlined(count)


def by_agents(variant: Variant, restless: Callable[..., Any]) -> Stop:
    """The check of whether any agent may change something.

    Parameters
    ----------
    variant : Variant
        Of a model of two states, 0 and 1.
    restless : callable
        ``restless(agent, high, known, n_high, p)``: whether it may, where `high` says that its own state is 1, and of
        `known` agents that it hears `n_high` have state 1.
    """
    count, complete = counted(variant), variant.complete

    def check(opinions, previous, contacts, p, timing, memory):
        n, cost, ones = contacts.n, 1, 0
        if complete:
            cost += n
            for agent in range(n):
                ones += np.int64(opinions[agent] > 0.5)  # type: ignore[assignment]
        for looked in range(n):
            agent = (memory[0] + looked) % n
            high = np.int64(opinions[agent] > 0.5)
            if complete:
                known, n_high = n - 1, ones - high
            else:
                known, n_high = count(opinions, contacts, agent)
            cost += 1 + np.int64(not complete) * known
            if known > 0 and restless(agent, high, known, n_high, p):
                memory[0] = agent
                return cost
        return -1

    return Stop(inlined(check), one_number, dear=not complete)
