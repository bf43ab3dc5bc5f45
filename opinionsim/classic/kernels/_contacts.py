"""Contacts of agents: networks as the flat arrays that kernels read."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from opinionsim.classic.kernels._random import draw, fill, index, uniform
from opinionsim.foundation.compilation import allocating, inlined
from opinionsim.networks import Network

#: Agent or pair that is drawn first.
LISTENER, SPEAKER, EDGE = 0, 1, 2
#: Order in which agents update.
RANDOM, PERMUTATION, SEQUENTIAL, SYNCHRONOUS = 0, 1, 2, 3
#: Bits of half a random word, and a mask of its lower half.
_HALF, _LOWER = np.uint64(32), np.uint64(2**32 - 1)
#: Words drawn ahead of a shuffle.
_WORDS = 256


class Variant(NamedTuple):
    """The case for which a kernel is made. Branches are resolved before compilation, so they cost no time in a run.

    Attributes
    ----------
    complete : bool
        Whether everybody hears everybody else.
    weighted : bool
        Whether pairs have weights.
    alone : bool
        Whether some agents have no partner.
    with_self : bool
        Whether an agent may meet itself, in the complete graph.
    pick : int
        Agent or pair that is drawn first: LISTENER, SPEAKER or EDGE.
    order : int
        Order in which agents update: RANDOM, PERMUTATION, SEQUENTIAL or SYNCHRONOUS.
    two_sided : bool
        Whether both agents of a pair update.
    given : bool
        Whether pairs are given instead of drawn.
    records : bool
        Whether opinions are recorded before the end.
    until : str
        Event at which a run ends: ``frozen``, ``consensus``, ``change``; empty for none.
    options : tuple of (str, int or bool)
        Values of the options and switches of the model, and whether parameters that may be idle have an effect.
    own : tuple of str
        Parameters with a separate value for every agent.
    vectors : bool
        Whether opinions have several dimensions.
    """

    complete: bool
    weighted: bool
    alone: bool
    with_self: bool
    pick: int
    order: int
    two_sided: bool
    given: bool
    records: bool
    until: str
    options: tuple[tuple[str, Any], ...]
    own: tuple[str, ...]
    vectors: bool

    def __str__(self) -> str:
        """Description in words."""
        orders = ("random order", "permutations", "sequences", "all at once")
        parts = ["complete network" if self.complete else "network", orders[self.order]]
        parts += (
            ["weights"] * self.weighted
            + ["both of a pair"] * self.two_sided
            + [f"until {self.until}"] * bool(self.until)
        )
        return ", ".join("recorded pairs" if self.given and part in orders else part for part in parts)

    def option(self, name: str) -> Any:
        """Return an option's index among its choices, or whether a switch is on; False if the name is unknown."""
        return dict(self.options).get(name, False)


class Contacts(NamedTuple):
    """A network ordered by the agent that is drawn first.

    Rows are listeners with the agents they hear or, if the speaker is drawn first, speakers with their audience.

    Attributes
    ----------
    n : int
        Number of agents.
    complete : bool
        Whether everybody hears everybody else. If so, all arrays except `firsts` are empty.
    with_self : bool
        Whether an agent may meet itself, in the complete graph.
    pick : int
        Agent or pair that is drawn first: LISTENER, SPEAKER or EDGE.
    firsts : ndarray of uint32
        Agents that can be drawn first, ascending: those with a partner.
    starts : ndarray (n + 1,) of int64
        Start of each agent's row.
    others : ndarray (E,) of uint32
        Partners, row by row.
    listeners : ndarray (E,) of uint32
        The listener of each pair if pairs are drawn; otherwise empty.
    weights : ndarray (E,)
        Weight of each pair; empty if all are equal.
    cumulative : ndarray (E + 1,)
        Sum of the weights before each pair and after the last; empty if all are equal.
    """

    n: int
    complete: bool
    with_self: bool
    pick: int
    firsts: np.ndarray
    starts: np.ndarray
    others: np.ndarray
    listeners: np.ndarray
    weights: np.ndarray
    cumulative: np.ndarray

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

    def matrix(self) -> Any:
        """Sparse matrix (N, N) of the weights of the agents that each agent hears; not for complete networks."""
        from scipy.sparse import csr_array

        # Half as wide an index is half the traffic, hence faster.
        narrow = np.int32 if max(self.others.size, self.n) < 2**31 else np.int64
        weights = self.weights.copy() if self.weights.size else np.ones(self.others.size)
        return csr_array((weights, self.others.astype(narrow), self.starts.astype(narrow)), shape=(self.n, self.n))


@inlined
def _reach_all(contacts, agent):
    return np.int64(contacts.n - 1)


@inlined
def _reach_row(contacts, agent):
    return np.int64(contacts.starts[agent + 1] - contacts.starts[agent])


@inlined
def _partner_in_all(contacts, agent, place):
    return place + np.int64(place >= agent)


@inlined
def _partner_in_row(contacts, agent, place):
    # Unsigned, for a signed index could count from the end, and is looked at for it.
    return np.int64(contacts.others[np.uint64(contacts.starts[agent] + place)])


@inlined
def heaviest(cumulative, low, high, word):
    """Return the index in low..high-1 on which a random point of their total weight falls, from cumulative weights."""
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
def _meet_any(contacts, first, word):
    return index(word, contacts.n)


@inlined
def _meet_other(contacts, first, word):
    place = index(word, contacts.n - 1)
    return place + np.int64(place >= first)


@inlined
def _meet_weighted(contacts, first, word):
    start, end = contacts.starts[first], contacts.starts[first + 1]
    return np.int64(contacts.others[heaviest(contacts.cumulative, start, end, word)])


@inlined
def _meet_in_row(contacts, first, word):
    start, end = contacts.starts[first], contacts.starts[first + 1]
    return np.int64(contacts.others[start + index(word, end - start)])


class Topology(NamedTuple):
    """Compiled functions that find the partners of an agent on a kind of network.

    Attributes
    ----------
    reach : callable
        ``reach(contacts, agent)``: number of partners.
    partner : callable
        ``partner(contacts, agent, place)``: the partner at an index of the agent's row.
    meet : callable
        ``meet(contacts, first, word)``: a partner of the agent drawn first, drawn in proportion to weights.
    """

    reach: Callable[..., Any]
    partner: Callable[..., Any]
    meet: Callable[..., Any]


def topology(variant: Variant) -> Topology:
    """Return the functions that find partners on the networks of a variant."""
    if variant.complete:
        return Topology(_reach_all, _partner_in_all, _meet_any if variant.with_self else _meet_other)
    return Topology(_reach_row, _partner_in_row, _meet_weighted if variant.weighted else _meet_in_row)


@inlined
def _share(word, n):
    """The upper half of `word` times `n` < 2**32, which is an index in 0..n-1; the lower half is `word * n`.

    The lower half is as random as the word was, and can give a next index: probabilities of a pair of agents differ
    by less than n**2 / 2**64.
    """
    upper, lower = (word >> _HALF) * n, (word & _LOWER) * n
    return (upper + (lower >> _HALF)) >> _HALF


@allocating
def shuffle(contacts, state, queue):
    """Fill `queue` with the agents that can be drawn first, in random order."""
    # From the same list each time, so that a step rests on nothing but the stream.
    for place in range(queue.size):
        queue[place] = contacts.firsts[place]
    # Fisher-Yates, two places of each random word.
    words, last = np.empty(_WORDS, np.uint64), queue.size - 1
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
def _visited_at_random(event, state, queue):
    return np.int64(queue[index(draw(state), queue.size)])


@inlined
def _visited_in_turn(event, state, queue):
    return np.int64(queue[event])


def visitor(variant: Variant) -> Callable[..., Any]:
    """``visit(event, state, queue)``: the agent whose turn it is, where agents update one after another."""
    return _visited_at_random if variant.order == RANDOM else _visited_in_turn


@inlined
def _draw_complete(contacts, queue, done, words, ones, others):
    """Draw two different agents out of all, in one loop without a branch: twice as fast as one after the other."""
    all_agents, all_but_one = np.uint64(contacts.n) & _LOWER, np.uint64(contacts.n - 1) & _LOWER
    for event in range(ones.size):
        word = words[event]
        one = _share(word, all_agents)
        other = _share(word * all_agents, all_but_one)
        ones[event], others[event] = one, other + np.uint64(other >= one)


@inlined
def _draw_edges(contacts, queue, done, words, listeners, speakers):
    """Draw pairs out of all that are joined."""
    total = contacts.others.size
    for event in range(listeners.size):
        place = np.uint64(index(words[event], total))
        listeners[event], speakers[event] = contacts.listeners[place], contacts.others[place]


@inlined
def _draw_weighted_edges(contacts, queue, done, words, listeners, speakers):
    """Draw pairs out of all that are joined, in proportion to weights."""
    total = contacts.others.size
    for event in range(listeners.size):
        place = np.uint64(heaviest(contacts.cumulative, 0, total, words[event]))
        listeners[event], speakers[event] = contacts.listeners[place], contacts.others[place]


@inlined
def _firsts_in_turn(contacts, queue, done, words, firsts):
    for event in range(firsts.size):
        firsts[event] = queue[done + event]


@inlined
def _firsts_of_all(contacts, queue, done, words, firsts):
    """Fill in the agent drawn first in each event; `words` keep their unused randomness."""
    size = np.uint64(contacts.firsts.size) & _LOWER
    for event in range(firsts.size):
        word = words[event]
        firsts[event], words[event] = _share(word, size), word * size


@inlined
def _firsts_of_some(contacts, queue, done, words, firsts):
    """The same where some agents have no partner."""
    size = np.uint64(contacts.firsts.size) & _LOWER
    for event in range(firsts.size):
        word = words[event]
        firsts[event], words[event] = contacts.firsts[_share(word, size)], word * size


@inlined
def _partners_in_rows(contacts, words, firsts, partners):
    """Draw the partner of each agent that was drawn first."""
    for event in range(firsts.size):
        # Unsigned, for a signed index could count from the end, and is looked at for it.
        first = np.uint64(firsts[event])
        row, end = np.uint64(contacts.starts[first]), np.uint64(contacts.starts[first + np.uint64(1)])
        partners[event] = contacts.others[row + _share(words[event], end - row)]


@cache
def _partners_by(meet: Callable[..., Any]) -> Callable[..., None]:
    def partners_by(contacts, words, firsts, partners):
        for event in range(firsts.size):
            partners[event] = meet(contacts, np.int64(firsts[event]), words[event])

    return inlined(partners_by)


@cache
def _drawer(firsts: Callable[..., None], partners: Callable[..., None], speaker_first: bool) -> Callable[..., None]:
    def listeners_first(contacts, queue, done, words, listeners, speakers):
        firsts(contacts, queue, done, words, listeners)
        partners(contacts, words, listeners, speakers)

    def speakers_first(contacts, queue, done, words, listeners, speakers):
        firsts(contacts, queue, done, words, speakers)
        partners(contacts, words, speakers, listeners)

    return inlined(speakers_first if speaker_first else listeners_first)


def pair_drawer(variant: Variant) -> Callable[..., None]:
    """Make the function that draws pairs in a variant.

    Returns
    -------
    callable
        ``draw(contacts, queue, done, words, listeners, speakers)``: draws a block of pairs into `listeners` and
        `speakers`, one per event. Each pair uses up one random word.

    Notes
    -----
    Pairs do not depend on opinions, so a block of them is drawn before its updates. Reads of a large network then wait
    for the memory together instead of one after another.
    """
    if variant.complete and variant.order == RANDOM and not variant.with_self:
        # Pairs are the same whether the listener or the speaker is drawn first.
        return _draw_complete
    if variant.pick == EDGE and not variant.complete:
        return _draw_weighted_edges if variant.weighted else _draw_edges
    at_random = _firsts_of_some if variant.alone else _firsts_of_all
    in_rows = not (variant.complete or variant.weighted)
    return _drawer(
        at_random if variant.order == RANDOM else _firsts_in_turn,
        _partners_in_rows if in_rows else _partners_by(topology(variant).meet),
        variant.pick == SPEAKER,
    )
