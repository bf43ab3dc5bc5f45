"""Who meets whom in an event: networks as the flat arrays that kernels read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from opinionsim.classic._random import fill, index, uniform
from opinionsim.compilation import inlined
from opinionsim.networks import Network

__all__ = ["EDGE", "LISTENER", "SPEAKER", "Contacts", "draw_pairs", "meet", "order_queue"]

#: Who is drawn first.
LISTENER, SPEAKER, EDGE = 0, 1, 2
#: In which order agents update.
RANDOM, PERMUTATION, SEQUENTIAL, SYNCHRONOUS = 0, 1, 2, 3
#: Bits of half a random word, and a mask of its lower half.
_HALF, _LOWER = np.uint64(32), np.uint64(2**32 - 1)
#: Words drawn ahead of a shuffle.
_WORDS = 256


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
def _share(word, n):
    """The upper half of `word` times `n` < 2**32, which is an index in 0..n-1; the lower half is `word * n`.

    The lower half is as random as the word was, and can give a next index: probabilities of a pair of agents differ
    by less than n**2 / 2**64.
    """
    upper, lower = (word >> _HALF) * n, (word & _LOWER) * n
    return (upper + (lower >> _HALF)) >> _HALF


@inlined
def order_queue(contacts, order, state, queue):
    """Lay down who updates when in the next sweep, where that does not depend on chance event by event."""
    if order != 1:
        return
    # From the same list each time, so that a sweep rests on nothing but the stream.
    queue[:] = contacts.firsts
    # Fisher-Yates, two places of each random word.
    words, last = np.empty(_WORDS, dtype=np.uint64), queue.size - 1
    while last > 0:
        count = min(_WORDS, (last + 1) // 2)
        fill(state, words[:count])
        for each in range(count):
            size, before = np.uint64(last + 1), last - 1
            place = _share(words[each], size)
            queue[last], queue[place] = queue[place], queue[last]
            place = _share(words[each] * size, np.uint64(last))
            queue[before], queue[place] = queue[place], queue[before]
            last -= 2


@inlined
def _draw_complete(n, words, ones, others):
    """Two different agents out of all, in one loop without a branch: twice as fast as one after the other."""
    all_agents, all_but_one = np.uint64(n) & _LOWER, np.uint64(n - 1) & _LOWER
    for event in range(ones.size):
        word = words[event]
        one = _share(word, all_agents)
        other = _share(word * all_agents, all_but_one)
        ones[event], others[event] = one, other + np.uint64(other >= one)


@inlined
def _draw_edges(contacts, words, listeners, speakers):
    """Pairs out of all that are joined, in proportion to weights."""
    total = contacts.others.size
    for event in range(listeners.size):
        if contacts.cumulative.size > 0:
            place = np.uint64(_heaviest(contacts.cumulative, 0, total, words[event]))
        else:
            place = np.uint64(index(words[event], total))
        listeners[event], speakers[event] = contacts.listeners[place], contacts.others[place]


@inlined
def _draw_firsts(contacts, order, queue, done, words, firsts):
    """Who is drawn first in each event. Where that is by chance, `words` keep what chance is left in them."""
    if order != 0:
        for event in range(firsts.size):
            firsts[event] = queue[done + event]
        return
    size = np.uint64(contacts.firsts.size) & _LOWER
    for event in range(firsts.size):
        word = words[event]
        firsts[event], words[event] = _share(word, size), word * size
    if contacts.firsts.size < contacts.n:
        for event in range(firsts.size):
            firsts[event] = contacts.firsts[firsts[event]]


@inlined
def _draw_partners(contacts, words, firsts, partners):
    """The partner of each that was drawn first, as of :func:`meet`."""
    if contacts.complete or contacts.cumulative.size > 0:
        for event in range(firsts.size):
            partners[event] = meet(contacts, np.int64(firsts[event]), words[event])
        return
    for event in range(firsts.size):
        # Unsigned, for a signed index could count from the end, and is looked at for it.
        first = np.uint64(firsts[event])
        row, end = np.uint64(contacts.starts[first]), np.uint64(contacts.starts[first + np.uint64(1)])
        partners[event] = contacts.others[row + _share(words[event], end - row)]


@inlined
def draw_pairs(contacts, order, queue, done, words, listeners, speakers):
    """Draw a block of pairs: one event each for `listeners` and `speakers`, of one random word each, which it uses up.

    No pair depends on an opinion, so a block is drawn ahead of its updates: reads of a large network then wait
    for the memory together instead of one after another.
    """
    if contacts.complete and order == 0 and not contacts.with_self:
        # Whoever is drawn first, pairs are alike.
        _draw_complete(contacts.n, words, listeners, speakers)
    elif contacts.pick == 2 and not contacts.complete:
        _draw_edges(contacts, words, listeners, speakers)
    elif contacts.pick == 1:
        _draw_firsts(contacts, order, queue, done, words, speakers)
        _draw_partners(contacts, words, speakers, listeners)
    else:
        _draw_firsts(contacts, order, queue, done, words, listeners)
        _draw_partners(contacts, words, listeners, speakers)
