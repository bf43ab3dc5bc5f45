"""Networks that change during a run: kernels move the two ends of each tie from agent to agent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from opinionsim.classic.kernels._random import draw, index, uniform
from opinionsim.foundation.compilation import allocating, inlined
from opinionsim.networks import Network

_NOBODY = np.empty(0, dtype=np.uint32)
_NONE = np.empty(0, dtype=np.int64)
#: Where rows keep how many cells they have given away, and where items and cells begin.
_USED, _ITEMS, _CELLS = 0, 1, 2
#: Where the heads of owners begin, and what is in them: size, start and width of the row, and a mark.
_HEADS, _SIZE, _START, _WIDTH, _MARK = 8, 0, 1, 2, 3


def rows_of(owners: np.ndarray, number: int, notes: np.ndarray | int = 0) -> np.ndarray:
    """Store items by owner, such as the ends of ties by agent, in rows that can grow.

    Parameters
    ----------
    owners : ndarray (items,) of int
        The owner of each item, below `number`.
    number : int
        Number of owners.
    notes : ndarray (items,) of int
        A number to store with each item.

    Returns
    -------
    ndarray of int32
        A few header numbers; then (size, start, width, mark) of each owner's row; then (owner, place) of each item;
        then the cells of rows, each (item, note). It is one array because compiled code counts references to each
        array. Numbers that are read together are stored together because a step mostly waits for memory.
    """
    order = np.argsort(owners, kind="stable")
    heads, items = np.zeros((number, 4), dtype=np.int32), np.empty((owners.size, 2), dtype=np.int32)
    items[:, 0] = owners
    items[order, 1] = np.arange(owners.size) - np.searchsorted(owners, owners[order], sorter=order)
    heads[:, _SIZE] = np.bincount(owners, minlength=number)
    heads[:, _WIDTH] = _width(heads[:, _SIZE])
    heads[:, _START] = np.cumsum(heads[:, _WIDTH]) - heads[:, _WIDTH]
    cells = np.zeros((4 * (number + owners.size), 2), dtype=np.int32)
    places = heads[items[:, 0], _START] + items[:, 1]
    cells[places, 0], cells[places, 1] = np.arange(owners.size), notes
    own = np.zeros(_HEADS, dtype=np.int32)
    own[_USED], own[_ITEMS] = heads[:, _WIDTH].sum(), own.size + heads.size
    own[_CELLS] = own[_ITEMS] + items.size
    return np.concatenate([own, heads.reshape(-1), items.reshape(-1), cells.reshape(-1)])


def owners_of(rows: np.ndarray) -> np.ndarray:
    """Return the owner of each item."""
    return rows[rows[_ITEMS] : rows[_CELLS] : 2]


class Ties(NamedTuple):
    """The current network of one run. Kernels that move ties receive it instead of contacts.

    They write to it during a run. Between two steps, it describes the network completely.

    Attributes
    ----------
    n : int
        Number of agents.
    firsts : ndarray (0,) of uint32
        Empty: no order of agents is kept.
    ends : ndarray of int32
        Ends of ties by agent, made by :func:`rows_of`. The ends of tie e are items 2e and 2e + 1, so the other end of h
        is ``h ^ 1``; the note of h is the agent at that other end.
    groups : ndarray of int32
        Agents or ties by group, as a model sorts them, also made by :func:`rows_of`.
    """

    n: int
    firsts: np.ndarray
    ends: np.ndarray
    groups: np.ndarray

    @classmethod
    def of(cls, network: Network, groups: np.ndarray = _NONE, number: int = 0) -> Ties:
        """Make the ties of an undirected network at the start of a run, with the group, < `number`, of each member."""
        pairs = network.edges[0]
        ends = rows_of(pairs.reshape(-1), network.n, pairs[:, ::-1].reshape(-1))
        return cls(network.n, _NOBODY, ends, rows_of(groups, number))

    @property
    def network(self) -> Network:
        """Make the network of these ties."""
        return Network.from_edges(owners_of(self.ends).reshape(-1, 2), self.n)


def unmovable(network: Network) -> str:
    """Return why the ties of a network cannot move; empty if they can."""
    if network.complete or network.listeners.size == network.n * (network.n - 1):
        return "in a complete network, all agents are already tied"
    if network.directed:
        return "the network must be undirected"
    if network.weights is not None:
        return "the network must not have weights"
    return ""


@inlined
def _width(size):
    """Room for so many items and half as many again."""
    return size + (size >> 1) + 2


@inlined
def size_of(rows, owner):
    """Return the number of items of an owner."""
    return np.int64(rows[_HEADS + 4 * owner + _SIZE])


@inlined
def owner_of(rows, item):
    """Return the owner of an item."""
    return np.int64(rows[rows[_ITEMS] + 2 * item])


@inlined
def number_of_ties(ends):
    """Return the number of ties."""
    return np.int64(ends[_CELLS] - ends[_ITEMS]) >> 2


@inlined
def _cell(rows, owner, place):
    return rows[_CELLS] + 2 * (rows[_HEADS + 4 * owner + _START] + place)


@inlined
def item_at(rows, owner, place):
    """Return the item at a place in an owner's row."""
    return np.int64(rows[_cell(rows, owner, place)])


@inlined
def note_at(rows, owner, place):
    """Return the note of the item at a place in an owner's row. For ends of ties, it is the agent at the other end."""
    return np.int64(rows[_cell(rows, owner, place) + 1])


@allocating
def _lay(rows):
    """Lay out all rows anew, one behind the other, each with room to spare."""
    old, used = rows.copy(), 0
    for head in range(_HEADS, rows[_ITEMS], 4):
        source, target = rows[_CELLS] + 2 * rows[head + _START], rows[_CELLS] + 2 * used
        for place in range(2 * rows[head + _SIZE]):
            rows[target + place] = old[source + place]
        rows[head + _START], rows[head + _WIDTH] = used, _width(rows[head + _SIZE])
        used += rows[head + _WIDTH]
    rows[_USED] = used


@inlined
def _widen(rows, head):
    """Lay a row out anew, behind all others, with room to spare; if there is no room, all rows."""
    size, start = rows[head + _SIZE], rows[_USED]
    if rows[_CELLS] + 2 * (start + _width(size)) > rows.size:
        _lay(rows)
        return
    source, target = rows[_CELLS] + 2 * rows[head + _START], rows[_CELLS] + 2 * start
    for place in range(2 * size):
        rows[target + place] = rows[source + place]
    rows[head + _START], rows[head + _WIDTH] = start, _width(size)
    rows[_USED] = start + _width(size)


@inlined
def move(rows, item, owner):
    """Move an item to the end of another owner's row; the last item of its old row takes its place."""
    at = rows[_ITEMS] + 2 * item
    place, old, new = rows[at + 1], _HEADS + 4 * rows[at], _HEADS + 4 * owner
    rows[old + _SIZE] -= 1
    emptied = rows[_CELLS] + 2 * (rows[old + _START] + place)
    last = rows[_CELLS] + 2 * (rows[old + _START] + rows[old + _SIZE])
    note = rows[emptied + 1]
    rows[emptied], rows[emptied + 1] = rows[last], rows[last + 1]
    rows[rows[_ITEMS] + 2 * rows[last] + 1] = place
    if rows[new + _SIZE] == rows[new + _WIDTH]:
        _widen(rows, new)
    size = rows[new + _SIZE]
    target = rows[_CELLS] + 2 * (rows[new + _START] + size)
    rows[target], rows[target + 1] = item, note
    rows[at], rows[at + 1] = owner, size
    rows[new + _SIZE] = size + 1


@inlined
def move_tie(ends, end, agent):
    """Move one end of a tie to another agent."""
    move(ends, end, agent)
    other = ends[_ITEMS] + 2 * (end ^ 1)
    ends[_cell(ends, ends[other], ends[other + 1]) + 1] = agent


@inlined
def tied(ends, one, other):
    """Return whether two agents are tied to each other."""
    if size_of(ends, one) > size_of(ends, other):
        one, other = other, one
    first = _cell(ends, one, 0) + 1
    found = False
    for at in range(first, first + 2 * size_of(ends, one), 2):
        found |= ends[at] == other
    return found


@inlined
def far_tie(opinions, ends, last, gap):
    """Look for a tie whose ends are at least a distance apart, starting with the one found last.

    Return the number of ties checked, or -1 if there is none.
    """
    count = number_of_ties(ends)
    for looked in range(count):
        tie = last[0] + looked
        tie -= count * np.int64(tie >= count)
        if abs(opinions[owner_of(ends, 2 * tie)] - opinions[owner_of(ends, 2 * tie + 1)]) >= gap:
            last[0] = tie
            return True
    return False


@inlined
def _mark(ends, agent, mark):
    """Mark an agent and all that are tied to it."""
    ends[_HEADS + 4 * agent + _MARK] = mark
    for place in range(size_of(ends, agent)):
        ends[_HEADS + 4 * note_at(ends, agent, place) + _MARK] = mark


@inlined
def number_of_all(groups, n, agent):
    return np.int64(n)


@inlined
def member_of_all(groups, agent, place):
    return np.int64(place)


@inlined
def number_alike(groups, n, agent):
    return size_of(groups, owner_of(groups, agent))


@inlined
def member_alike(groups, agent, place):
    return item_at(groups, owner_of(groups, agent), place)


@inlined
def anybody(opinions, p, agent, other):
    """Equal weight for all candidates."""
    return 1.0


def target_finder(
    number: Callable[..., Any], member: Callable[..., Any], weigh: Callable[..., float], tries: int
) -> Callable[..., int]:
    """Make the function that draws the agent to which a tie moves.

    Parameters
    ----------
    number, member : callable
        ``number(groups, n, agent)``: the number of candidates. ``member(groups, agent, place)``: one of them.
    weigh : callable
        ``weigh(opinions, p, agent, other) -> float``: the weight of each candidate, from 0 to 1.
    tries : int
        Number of draws before the function goes through all candidates.

    Returns
    -------
    callable
        ``find(opinions, ends, groups, n, p, agent, state)``: an agent that is neither `agent` itself nor tied to it,
        drawn in proportion to weights; -1 if there is none.

    Notes
    -----
    Repeated draws until one is accepted and a pass through all candidates give the same probabilities, so `tries` does
    not change them.
    """
    graded = weigh is not anybody

    def find(opinions, ends, groups, n, p, agent, state):
        size = number(groups, n, agent)
        for _ in range(tries):
            other = member(groups, agent, index(draw(state), size))
            if other != agent:
                # Two conditions, for where weights are equal the first is known to the compiler.
                if graded:  # noqa: SIM102
                    if uniform(draw(state)) >= weigh(opinions, p, agent, other):
                        continue
                if not tied(ends, agent, other):
                    return other
        _mark(ends, agent, 1)
        total, found = 0.0, np.int64(-1)
        for place in range(size):
            other = member(groups, agent, place)
            if ends[_HEADS + 4 * other + _MARK] == 0:
                total += weigh(opinions, p, agent, other)
        left = uniform(draw(state)) * total
        for place in range(size):
            other = member(groups, agent, place)
            if ends[_HEADS + 4 * other + _MARK] == 0 and left >= 0.0:
                weight = weigh(opinions, p, agent, other)
                left -= weight
                if weight > 0.0:
                    found = other
        _mark(ends, agent, 0)
        return found

    return inlined(find)
