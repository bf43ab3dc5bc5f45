"""Several partners at once: panels of neighbours, with or without repetition."""

from __future__ import annotations

from typing import Any

import numpy as np

from opinionsim.classic._contacts import meet
from opinionsim.classic._random import draw, index, uniform
from opinionsim.compilation import inlined

__all__ = ["panel", "partner", "reach", "received"]


@inlined
def reach(contacts, agent):
    """Number of partners of an agent."""
    if contacts.complete:
        return np.int64(contacts.n - 1)
    return np.int64(contacts.starts[agent + 1] - contacts.starts[agent])


@inlined
def partner(contacts, agent, place):
    """The partner at a place of an agent's row."""
    if contacts.complete:
        return place + np.int64(place >= agent)
    return np.int64(contacts.others[contacts.starts[agent] + place])


@inlined
def _listed(items, count, item):
    """Whether an item is among the first `count`."""
    for place in range(count):  # noqa: SIM110 - compiled, which generators are not
        if items[place] == item:
            return True
    return False


@inlined
def _heavy(contacts, agent, drawn, count, word):
    """A place of an agent's row in proportion to weights, those `drawn` left out; -1 if nothing weighs more than 0."""
    first, size = contacts.starts[agent], reach(contacts, agent)
    total = 0.0
    for place in range(size):
        if not _listed(drawn, count, place):
            total += contacts.weights[first + place]
    target, passed, found = uniform(word) * total, 0.0, np.int64(-1)
    for place in range(size):
        weight = contacts.weights[first + place]
        if weight > 0.0 and not _listed(drawn, count, place):
            found = np.int64(place)
            passed += weight
            if passed > target:
                break
    return found


@inlined
def panel(contacts, agent, repetition, state, members):
    """Draw an agent's partners into `members`, in proportion to weights; returns how many they are.

    Without repetition they are different agents, and all there are where `members` has room for more.
    """
    wanted = members.size
    if repetition:
        for place in range(wanted):
            members[place] = meet(contacts, agent, draw(state))
        return wanted
    size = reach(contacts, agent)
    if contacts.weights.size > 0:
        count = 0
        while count < min(wanted, size):
            place = _heavy(contacts, agent, members, count, draw(state))
            if place < 0:
                break
            members[count] = place
            count += 1
    elif size <= wanted:
        count = size
        for place in range(size):
            members[place] = place
    else:
        # Floyd's way: as many draws as members, however many partners there are.
        count = 0
        for last in range(size - wanted, size):
            place = index(draw(state), last + 1)
            members[count] = last if _listed(members, count, place) else place
            count += 1
    for place in range(count):
        members[place] = partner(contacts, agent, members[place])
    return count


def received(messages: np.ndarray, weights: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Messages (T, m) and their weights (T, m), where missing ones, which are NaN, weigh nothing."""
    missing = np.isnan(messages)
    given = np.ones(messages.shape) if weights is None else np.asarray(weights, dtype=float)
    return np.where(missing, 0.0, messages), np.where(missing, 0.0, given)
