"""Who meets whom in an event: networks as the flat arrays that kernels read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from opinionsim.classic._jit import inlined
from opinionsim.classic._random import index, shuffle, uniform
from opinionsim.networks import Network

__all__ = ["EDGE", "LISTENER", "SPEAKER", "Contacts", "draw_pairs", "meet", "order_queue"]

#: Who is drawn first.
LISTENER, SPEAKER, EDGE = 0, 1, 2
#: In which order agents update.
RANDOM, PERMUTATION, SEQUENTIAL, SYNCHRONOUS = 0, 1, 2, 3


class Contacts(NamedTuple):
    """A network by the agent that is drawn first.

    Rows are listeners with those they hear, or, where the speaker is drawn first, speakers with their audience.
    """

    n: int
    """Number of agents."""
    complete: bool
    """Whether everybody hears everybody else; then all but `firsts` is empty."""
    with_self: bool
    """Whether an agent may meet itself, in the complete graph."""
    pick: int
    """Who is drawn first: LISTENER, SPEAKER or EDGE."""
    firsts: np.ndarray
    """Agents that can be drawn first, uint32, ascending: those with a partner."""
    starts: np.ndarray
    """Where each agent's row begins, int64 (n + 1,)."""
    others: np.ndarray
    """Partners, row by row, uint32 (E,)."""
    listeners: np.ndarray
    """The listener of each pair, uint32 (E,), where pairs are drawn; empty otherwise."""
    weights: np.ndarray
    """Weight of each pair, float64 (E,); empty where all are equal."""
    cumulative: np.ndarray
    """Sum of the weights before each pair and after the last, float64 (E + 1,); empty where all are equal."""

    @classmethod
    def of(cls, network: Network, pick: int = LISTENER, *, with_self: bool = False) -> Contacts:
        """The contacts of a network."""
        n, none = network.n, np.empty(0, dtype=np.float64)
        nobody = np.empty(0, dtype=np.uint32)
        if network.complete:
            everybody = np.arange(n, dtype=np.uint32)
            return cls(n, True, with_self, pick, everybody, np.empty(0, dtype=np.int64), nobody, nobody, none, none)
        weights = network.weights
        if pick == SPEAKER:
            starts, others, order = network.audience
            weights = None if weights is None else weights[order]
        else:
            starts, others = network.heard
        weighted = none if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
        cumulative = np.concatenate([[0.0], np.cumsum(weighted)]) if weighted.size else none
        firsts = np.flatnonzero(np.diff(starts)).astype(np.uint32)
        listeners = network.listeners if pick == EDGE else nobody
        return cls(n, False, False, pick, firsts, starts, others, listeners, weighted, cumulative)


@inlined
def _heaviest(cumulative, low, high, word):
    """The pair in low..high-1 on which a random point of their total weight falls."""
    target = cumulative[low] + uniform(word) * (cumulative[high] - cumulative[low])
    last = high - 1
    while low < last:
        middle = (low + last + 1) >> 1
        if cumulative[middle] <= target:
            low = middle
        else:
            last = middle - 1
    return low


@inlined
def meet(contacts, first, word):
    """The partner of the agent that was drawn first, in proportion to weights."""
    if contacts.complete:
        if contacts.with_self:
            return index(word, contacts.n)
        other = index(word, contacts.n - 1)
        return other + np.int64(other >= first)
    start, end = contacts.starts[first], contacts.starts[first + 1]
    if contacts.cumulative.size > 0:
        return np.int64(contacts.others[_heaviest(contacts.cumulative, start, end, word)])
    return np.int64(contacts.others[start + index(word, end - start)])


@inlined
def order_queue(contacts, order, state, queue):
    """Lay down who updates when in the next sweep, where that does not depend on chance event by event."""
    if order == 1:
        shuffle(state, queue)


@inlined
def draw_pairs(contacts, order, queue, done, words, listeners, speakers):
    """Draw a block of pairs: one event each for `listeners` and `speakers`, two random words an event.

    No pair depends on an opinion, so a block is drawn ahead of its updates: reads of a large network then wait
    for the memory together instead of one after another.
    """
    count = listeners.size
    if contacts.complete:
        # The commonest case by itself, without a branch an event: it is twice as fast. Of a pair drawn at random it
        # does not matter who is drawn first; in any other order it is the listener.
        skipped = np.int64(not contacts.with_self)
        for event in range(count):
            first = index(words[2 * event], contacts.n) if order == 0 else np.int64(queue[done + event])
            other = index(words[2 * event + 1], contacts.n - skipped)
            listeners[event], speakers[event] = first, other + (skipped & np.int64(other >= first))
        return
    if contacts.pick == 2:
        total = contacts.others.size
        for event in range(count):
            if contacts.cumulative.size > 0:
                place = _heaviest(contacts.cumulative, 0, total, words[2 * event])
            else:
                place = index(words[2 * event], total)
            listeners[event] = contacts.listeners[place]
            speakers[event] = contacts.others[place]
        return
    everybody = contacts.firsts.size == contacts.n
    for event in range(count):
        if order == 0:
            first = index(words[2 * event], contacts.firsts.size)
            if not everybody:
                first = np.int64(contacts.firsts[first])
        else:
            first = np.int64(queue[done + event])
        other = meet(contacts, first, words[2 * event + 1])
        if contacts.pick == 1:
            listeners[event], speakers[event] = other, first
        else:
            listeners[event], speakers[event] = first, other
