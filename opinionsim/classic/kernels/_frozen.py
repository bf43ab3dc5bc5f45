"""Exact criteria for states in which no cluster of opinions can change."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from opinionsim.classic.kernels._contacts import Variant, topology
from opinionsim.classic.kernels._stepping import Stop
from opinionsim.classic.kernels._until import CONSENSUS, one_number
from opinionsim.errors import SpecError
from opinionsim.foundation.compilation import allocating, at, inlined

if TYPE_CHECKING:
    from opinionsim.classic.kernels._process import Setup

#: Cells of the width of one confidence that a range may be divided into.
_MOST_CELLS = 2**22
#: Agents that are looked at first.
_FIRST = 16
#: A component wider than this many times what is at rest is not looked at further: its ends will go on showing it.
_AMPLY = 1.5

#: The criteria of bounded confidence in words.
BOUNDED_CONFIDENCE = (
    "no cluster can split or meet another. On the complete graph with one confidence for all, sort the opinions and "
    "split them where two in a row are farther apart than the confidence: no block may be wider than that, so blocks "
    "can only shrink. Otherwise, take the components of the ties within reach: no component may be wider than the "
    "confidence by which one of its ties is within reach, and no tie between two components may be within reach of "
    "the range that both cover."
)
#: The criterion of copying in words.
NO_DISCORD = "no agent that can change hears an opinion other than its own."


def bounded_confidence(setup: Setup) -> Stop:
    """Criterion for models in which two agents move closer if they are within confidence."""
    variant = setup.variant()
    require_approach(setup)
    if not variant.complete or "epsilon" in variant.own:
        return Stop(_ties_at_rest(variant), _forest)
    if not setup.parameters["epsilon"]:
        return Stop(_at_once, one_number)
    cells = (setup.range[1] - setup.range[0]) / max(float(setup.p.epsilon), 1e-300)
    if cells > _MOST_CELLS:
        least = (setup.range[1] - setup.range[0]) / _MOST_CELLS
        raise SpecError(
            f"until: frozen needs an epsilon of 0 or at least {least:.2g} on this range; got "
            f"{setup.parameters['epsilon']:g}"
        )
    return Stop(_blocks_at_rest, _cells)


def require_approach(setup: Setup) -> None:
    """Refuse a step so large that two agents who meet swap their opinions instead of moving closer.

    Raises
    ------
    SpecError
        If all agents have such a step.
    """
    both = setup.scheme.get("sides", "two") == "two"
    if both and np.all(np.asarray(setup.p.mu) >= 1):
        raise SpecError("until: frozen cannot be reached if mu is 1 and both agents update, because they swap opinions")


@inlined
def _at_once(opinions, previous, contacts, p, timing, memory):
    """Where none but equal opinions meet, nothing can change."""
    return True


@allocating
def _cells(opinions, contacts, p):
    """Ends of opinions in each cell, the agents that have them, three agents of a wide block, and the frame."""
    # A little narrower than the confidence, so that all in a cell are within it.
    width = 0.999 * p.epsilon
    count = np.int64((p.limits[1] - p.limits[0]) / width) + 1
    frame = np.empty(2)
    frame[0], frame[1] = p.limits[0], 1.0 / width
    return np.empty(count), np.empty(count), np.empty(2 * count, np.uint32), np.zeros(3, np.uint32), frame


@inlined
def _wide(opinions, shown, epsilon, width):
    """Whether three agents, two within reach of the middle one, are farther apart than the confidence or `width`."""
    low, middle, high = opinions[shown[0]], opinions[shown[1]], opinions[shown[2]]
    return middle - low < epsilon and high - middle < epsilon and (not high - low < epsilon or high - low > width)


@inlined
def _find_wide(opinions, lows, highs, ends, shown, epsilon, width):
    """Look for three such agents among those at the ends of cells; some are in every block that is too wide."""
    first, last = np.uint32(0), np.uint32(0)
    end = -np.inf
    for place in range(ends.size):
        if lows[place >> 1] <= highs[place >> 1]:
            agent = ends[place]
            opinion = opinions[agent]
            if not opinion - end < epsilon:
                first = agent
            shown[0], shown[1], shown[2] = first, last, agent
            if first != agent and _wide(opinions, shown, epsilon, width):
                return True
            last, end = agent, opinion
    return False


@inlined
def _blocks_at_rest(opinions, previous, contacts, p, timing, memory):
    """Look at ever more agents until some of them make a block too wide; blocks of more agents are no narrower."""
    lows, highs, ends, shown, frame = memory
    if _wide(opinions, shown, p.epsilon, timing.tolerance):
        return False
    for cell in range(lows.size):
        lows[cell], highs[cell] = np.inf, -np.inf
    done, part = 0, max(_FIRST, lows.size)
    while done < opinions.size:
        end = min(opinions.size, done + part)
        for agent in range(done, end):
            opinion = opinions[agent]
            home = min(np.uint64(np.int64((opinion - frame[0]) * frame[1])), np.uint64(lows.size - 1))
            if opinion < lows[home]:
                lows[home], ends[home + home] = opinion, agent
            if opinion > highs[home]:
                highs[home], ends[home + home + np.uint64(1)] = opinion, agent
        if _find_wide(opinions, lows, highs, ends, shown, p.epsilon, timing.tolerance):
            return False
        done, part = end, 2 * part
    return True


@inlined
def root(parents, agent):
    """Return the agent at the root of another's tree, and shorten the paths in `parents` (N,)."""
    while parents[agent] != agent:
        parents[agent] = parents[parents[agent]]
        agent = parents[agent]
    return agent


@allocating
def _forest(opinions, contacts, p):
    """Links, parent, lowest and highest agent and least confidence of each component, a queue, and agents that show it.

    The link of an agent leads to another of its component: twice that agent, and one more if the tie is within reach by
    its own confidence in place of that of the other. It leads to itself at the root.
    """
    n = opinions.size
    links, shown = np.empty(n, np.int64), np.zeros(4, np.int64)
    for agent in range(n):
        links[agent] = 2 * agent
    shown[2] = -1
    parents, queue = np.empty(n, np.uint32), np.empty(n + 1, np.uint32)
    return links, (parents, queue), (np.empty(n, np.int64), np.empty(n, np.int64)), np.empty(n), shown


@inlined
def _going_on(opinions, p, links, shown, tolerance):
    """Whether the agents that showed that a run goes on show it still, by links that are within reach.

    Either the first two are in one component, and far apart; or the first is in that of the third, and the second in
    that of the fourth, and they are within the confidence by which the third hears the fourth. If these two components
    have become one, it is too wide as long as third and fourth are far apart.
    """
    least = np.inf
    for each in range(2 if shown[2] < 0 else 4):
        agent = shown[each]
        while links[agent] >> 1 != agent:
            other = links[agent] >> 1
            epsilon = at(p.epsilon, agent if links[agent] & 1 else other)
            if not abs(opinions[other] - opinions[agent]) < epsilon:
                return False
            least, agent = min(least, epsilon), other
    width = abs(opinions[shown[0]] - opinions[shown[1]])
    if shown[2] < 0:
        return width > tolerance or not width < least
    return width < at(p.epsilon, shown[2]) and not abs(opinions[shown[2]] - opinions[shown[3]]) < least


@inlined
def _turn(links, agent, link):
    """Make an agent the root of its tree, and hang it from another by a link."""
    while True:
        before = links[agent]
        links[agent] = link
        if before >> 1 == agent:
            return
        agent, link = before >> 1, 2 * agent + 1 - (before & 1)


def _ties_at_rest(variant: Variant) -> Callable[..., Any]:
    reach, partner, _ = topology(variant)
    weighted = variant.weighted

    def check(opinions, previous, contacts, p, timing, memory):
        links, (parents, queue), (lows, highs), least, shown = memory
        n, begun, tolerance, nowhere, beside = opinions.size, shown[0], timing.tolerance, np.uint32(opinions.size), 0
        if _going_on(opinions, p, links, shown, tolerance):
            return False
        for agent in range(n):
            parents[agent] = nowhere
        for looked in range(n):
            one = begun + looked
            one -= n * np.int64(one >= n)
            if parents[one] != nowhere:
                continue
            parents[one], links[one], queue[0], low, high, tight = one, 2 * one, one, one, one, np.inf
            done, end = 0, np.uint64(1)
            while done < end and not opinions[high] - opinions[low] > _AMPLY * min(tolerance, tight):
                agent, first, some = np.int64(queue[done]), end, False  # type: ignore[assignment]
                own, epsilon, done = opinions[agent], at(p.epsilon, agent), done + 1
                # Nothing branches on what cannot be guessed: all are put into the queue, and kept by counting on.
                for place in range(reach(contacts, agent)):
                    other = np.uint64(partner(contacts, agent, place))
                    near = abs(opinions[other] - own) < epsilon
                    if weighted:
                        near &= contacts.weights[contacts.starts[agent] + place] > 0.0
                    new = near & (parents[other] == nowhere)
                    queue[end], parents[other] = other, one if new else parents[other]
                    end += np.uint64(new)
                    some |= near
                for place in range(first, end):
                    found = np.int64(queue[np.uint64(place)])
                    links[found] = 2 * agent
                    low = found if opinions[found] < opinions[low] else low
                    high = found if opinions[found] > opinions[high] else high
                tight = min(tight, epsilon if some else np.inf)
            lows[one], highs[one], least[one], width = low, high, tight, opinions[high] - opinions[low]
            if width > tolerance or not width < tight:
                shown[0], shown[1], shown[2] = low, high, -1
                return False
        # All components are narrow: what is left are ties between them, of agents who go into the queue once more.
        for agent in range(n):
            own, epsilon, mine, met, close = opinions[agent], at(p.epsilon, agent), parents[agent], False, False
            for place in range(reach(contacts, agent)):
                other = np.uint64(partner(contacts, agent, place))
                gap = abs(opinions[other] - own)
                met |= (gap < epsilon) & (parents[other] != mine)
                close |= (gap >= epsilon) & (gap <= epsilon + 3.0 * tolerance)
            queue[beside] = agent
            beside += np.int64(close)  # type: ignore[assignment]
            # One that hears another without being heard brings two components together.
            for place in range(reach(contacts, agent) if met else 0):
                heard = partner(contacts, agent, place)
                one, two = root(parents, agent), root(parents, heard)
                if one == two or not abs(opinions[heard] - own) < epsilon:
                    continue
                if weighted and contacts.weights[contacts.starts[agent] + place] <= 0.0:
                    continue
                _turn(links, agent, 2 * heard + 1)
                parents[one], least[two] = two, min(least[one], least[two])
                lows[two] = lows[one] if opinions[lows[one]] < opinions[lows[two]] else lows[two]
                highs[two] = highs[one] if opinions[highs[one]] > opinions[highs[two]] else highs[two]
                width = opinions[highs[two]] - opinions[lows[two]]
                if width > tolerance or not width < least[two]:
                    shown[0], shown[1], shown[2] = lows[two], highs[two], -1
                    return False
        # Ends of components as narrow as these are no nearer to each other than agents beyond that.
        for looked in range(beside):
            agent = np.int64(queue[looked])  # type: ignore[assignment]
            epsilon = at(p.epsilon, agent)
            for place in range(reach(contacts, agent)):
                heard = partner(contacts, agent, place)
                one, two = root(parents, agent), root(parents, heard)
                if one == two or (weighted and contacts.weights[contacts.starts[agent] + place] <= 0.0):
                    continue
                above, below = opinions[lows[one]] - opinions[highs[two]], opinions[lows[two]] - opinions[highs[one]]
                if max(above, below) < epsilon:
                    shown[2], shown[3] = agent, heard
                    shown[0], shown[1] = (lows[one], highs[two]) if above > below else (highs[one], lows[two])
                    return False
        return True

    return inlined(check)


def no_discord(setup: Setup) -> Stop:
    """Criterion for models in which agents copy: no agent that can change hears an opinion other than its own."""
    variant = setup.variant()
    if variant.complete and "zealot" not in variant.own:
        return CONSENSUS
    reach, partner, _ = topology(variant)
    weighted = variant.weighted

    def check(opinions, previous, contacts, p, timing, memory):
        n = contacts.n
        for looked in range(n):
            agent = (memory[0] + looked) % n
            if at(p.zealot, agent) == 1:
                continue
            for place in range(reach(contacts, agent)):
                if opinions[partner(contacts, agent, place)] == opinions[agent]:
                    continue
                if weighted and contacts.weights[contacts.starts[agent] + place] <= 0.0:
                    continue
                memory[0] = agent
                return False
        return True

    return Stop(inlined(check), one_number)


def counted(variant: Variant) -> Callable[..., Any]:
    """``count(opinions, contacts, agent)``: number of agents that an agent hears, and how many are at the upper end."""
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
    """Make the check of whether any agent can change.

    Parameters
    ----------
    variant : Variant
        A variant of a model with two states, 0 and 1.
    restless : callable
        ``restless(agent, high, known, n_high, p)``: whether the agent can change. `high` is true if its state is 1, and
        `n_high` of the `known` agents that it hears have state 1.
    """
    count, complete = counted(variant), variant.complete

    def check(opinions, previous, contacts, p, timing, memory):
        n, ones = contacts.n, 0
        if complete:
            for agent in range(n):
                ones += np.int64(opinions[agent] > 0.5)  # type: ignore[assignment]
        for looked in range(n):
            agent = (memory[0] + looked) % n
            high = np.int64(opinions[agent] > 0.5)
            if complete:
                known, n_high = n - 1, ones - high
            else:
                known, n_high = count(opinions, contacts, agent)
            if known > 0 and restless(agent, high, known, n_high, p):
                memory[0] = agent
                return False
        return True

    return Stop(inlined(check), one_number)
