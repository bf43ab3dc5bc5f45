"""Networks that change during a run: ties with two ends each, which kernels move from agent to agent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from opinionsim.classic._random import draw, index, uniform
from opinionsim.compilation import inlined
from opinionsim.networks import Network

_NOBODY = np.empty(0, dtype=np.uint32)
_NONE = np.empty(0, dtype=np.int32)


class Rows(NamedTuple):
    """Items by owner, such as the ends of ties by agent, in rows that grow.

    Attributes
    ----------
    owners : ndarray (items,) of int32
        The owner of each item.
    places : ndarray (items,) of int32
        Its place among the items of its owner.
    sizes, starts, widths : ndarray (owners,) of int64
        Items in a row, where it begins, and how many it has room for.
    cells : ndarray of int32
        The rows: an item is at its owner's start plus its own place.
    used : ndarray (1,) of int64
        Cells given away so far.
    """

    owners: np.ndarray
    places: np.ndarray
    sizes: np.ndarray
    starts: np.ndarray
    widths: np.ndarray
    cells: np.ndarray
    used: np.ndarray

    @classmethod
    def of(cls, owners: np.ndarray, number: int) -> Rows:
        """The items of so many owners, in order."""
        order = np.argsort(owners, kind="stable")
        places = np.empty(owners.size, dtype=np.int32)
        places[order] = np.arange(owners.size) - np.searchsorted(owners, owners[order], sorter=order)
        sizes, starts, widths, used = (np.empty(count, dtype=np.int64) for count in (number, number, number, 1))
        cells = np.empty(4 * (number + owners.size), dtype=np.int32)
        rows = cls(owners.astype(np.int32), places, sizes, starts, widths, cells, used)
        rows.sizes[:] = np.bincount(owners, minlength=number)
        rows.widths[:] = _width(rows.sizes)
        rows.starts[:] = np.cumsum(rows.widths) - rows.widths
        rows.used[0] = rows.widths.sum()
        rows.cells[rows.starts[rows.owners] + rows.places] = np.arange(owners.size)
        return rows


class Ties(NamedTuple):
    """The network of one run as it is at the moment; kernels that move ties get it in the place of contacts.

    The ends of tie e are numbered 2e and 2e + 1, so that the other end of h is ``h ^ 1``. All of it is written to in
    the course of a run, and is all there is to know of the network between two steps.

    Attributes
    ----------
    n : int
        Number of agents.
    firsts : ndarray (0,) of uint32
        Empty: no order of agents is kept.
    ends : Rows
        Ends of ties by agent.
    groups : Rows
        Agents or ties by group, as a model sorts them; empty where it does not.
    differing : ndarray (1,) of int64
        Ties between agents of different groups, where a model counts them.
    marks : ndarray (n,) of int32
        Zeros.
    """

    n: int
    firsts: np.ndarray
    ends: Rows
    groups: Rows
    differing: np.ndarray
    marks: np.ndarray

    @classmethod
    def of(cls, network: Network, groups: np.ndarray = _NONE, number: int = 0) -> Ties:
        """The ties of an undirected network at the start of a run, with `number` groups of members."""
        ends = Rows.of(network.edges[0].reshape(-1), network.n)
        differing, marks = np.zeros(1, dtype=np.int64), np.zeros(network.n, dtype=np.int32)
        return cls(network.n, _NOBODY, ends, Rows.of(groups, number), differing, marks)

    @property
    def network(self) -> Network:
        """The network of these ties."""
        return Network.from_edges(self.ends.owners.reshape(-1, 2), self.n)


@inlined
def _width(size):
    """Room for so many items and half as many again."""
    return size + (size >> 1) + 2


@inlined
def _lay(rows):
    """Lay out all rows one behind the other, each with room to spare."""
    used = 0
    for row in range(rows.sizes.size):
        rows.starts[row], rows.widths[row] = used, _width(rows.sizes[row])
        used += rows.widths[row]
    rows.used[0] = used
    for item in range(rows.owners.size):
        rows.cells[rows.starts[rows.owners[item]] + rows.places[item]] = item


@inlined
def move(rows, item, target):
    """Move an item to the end of another owner's row; the last item of its old row takes its place."""
    row, place, size = rows.owners[item], rows.places[item], rows.sizes[target]
    rows.sizes[row] -= 1
    rows.sizes[target] += 1
    last = rows.cells[rows.starts[row] + rows.sizes[row]]
    rows.cells[rows.starts[row] + place] = last
    rows.places[last] = place
    rows.owners[item], rows.places[item] = target, size
    if size == rows.widths[target]:
        start = rows.used[0]
        if start + _width(size) > rows.cells.size:
            _lay(rows)
        else:
            for each in range(size):
                rows.cells[start + each] = rows.cells[rows.starts[target] + each]
            rows.starts[target], rows.widths[target] = start, _width(size)
            rows.used[0] += _width(size)
    rows.cells[rows.starts[target] + size] = item


@inlined
def tied(ends, one, other):
    """Whether two agents are tied to each other."""
    if ends.sizes[one] > ends.sizes[other]:
        one, other = other, one
    start = ends.starts[one]
    for place in range(ends.sizes[one]):
        if ends.owners[ends.cells[start + place] ^ 1] == other:
            return True
    return False


@inlined
def number_of_all(ties, agent):
    return np.int64(ties.n)


@inlined
def member_of_all(ties, agent, place):
    return place


@inlined
def number_alike(ties, agent):
    return ties.groups.sizes[ties.groups.owners[agent]]


@inlined
def member_alike(ties, agent, place):
    return np.int64(ties.groups.cells[ties.groups.starts[ties.groups.owners[agent]] + place])


def target_finder(
    number: Callable[..., int], member: Callable[..., int], weigh: Callable[..., float], tries: int
) -> Callable[..., int]:
    """The function that draws the agent to which a tie is moved.

    Parameters
    ----------
    number, member : callable
        ``number(ties, agent)`` agents come into question, ``member(ties, agent, place)`` are they.
    weigh : callable
        ``weigh(opinions, p, agent, other) -> float``: the weight of each, from 0 to 1.
    tries : int
        Agents that are drawn before all are gone through.

    Returns
    -------
    callable
        ``find(opinions, ties, p, agent, state)``: an agent that is neither `agent` itself nor
        tied to it, in proportion to weights; -1 if there is none.

    Notes
    -----
    Drawing until one is accepted, and going through all, give each the same probability, so that it does not matter
    where one gives way to the other.
    """

    def find(opinions, ties, p, agent, state):
        size = number(ties, agent)
        for _ in range(tries):
            other = member(ties, agent, index(draw(state), size))
            if other != agent and uniform(draw(state)) < weigh(opinions, p, agent, other):
                if not tied(ties.ends, agent, other):
                    return other
        ends, marks, total, found = ties.ends, ties.marks, 0.0, -1
        start, degree = ends.starts[agent], ends.sizes[agent]
        marks[agent] = 1
        for place in range(degree):
            marks[ends.owners[ends.cells[start + place] ^ 1]] = 1
        for place in range(size):
            other = member(ties, agent, place)
            if marks[other] == 0:
                total += weigh(opinions, p, agent, other)
        left = uniform(draw(state)) * total
        for place in range(size):
            other = member(ties, agent, place)
            if marks[other] == 0 and left >= 0.0:
                weight = weigh(opinions, p, agent, other)
                left -= weight
                if weight > 0.0:
                    found = other
        marks[agent] = 0
        for place in range(degree):
            marks[ends.owners[ends.cells[start + place] ^ 1]] = 0
        return found

    return inlined(find)


@inlined
def anybody(opinions, p, agent, other):
    """The weight of agents that all come into question alike."""
    return 1.0


def unmovable(network: Network) -> str:
    """Why the ties of a network cannot move; empty where they can."""
    if network.complete or network.listeners.size == network.n * (network.n - 1):
        return "a complete network leaves nobody else to be tied to"
    if network.directed:
        return "ties that move have two ends; this network is directed"
    if network.weights is not None:
        return "ties that move have no weights; this network has"
    return ""

