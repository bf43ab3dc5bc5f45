"""Meetings with partners drawn in proportion to a power of closeness, exactly, without a power for every distance.

The weight of an agent at distance d is w max(d, floor)^-gamma. Bounds of the power are read from a table, by the
exponent and the first mantissa bits of the distance. A partner is drawn in proportion to the upper bounds, by a point
between 0 and their sum, and stays drawn if the point lies within its weight. The lower bound settles most draws, so
that few need the power itself.

On the complete graph agents lie in the cells of a tree over the range of their opinions, eight to a cell of the level
above. Far agents are bounded together by the nearest end of a cell, large cells far away and small ones nearby.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from opinionsim.classic.kernels._contacts import Variant, topology
from opinionsim.classic.kernels._influences import MEETS, meeting
from opinionsim.classic.kernels._random import draw, uniform
from opinionsim.foundation.compilation import allocating, at, inlined

#: Bits of a distance behind those that the table tells apart: exponent and four of the mantissa.
_SHIFT = np.uint64(48)
#: Intervals of all distances, and those that the table covers at most.
_INTERVALS, _COVERED = 2**15, 4096
#: The strongest bias that is drawn by bounds: a stronger one makes them too loose.
_STRONGEST = 32.0
#: A cell is drawn as a whole if it is no wider than this, over gamma, times its distance.
_WIDTH = 6.0
#: Cells of a level that may lie too near for that.
_NEAR = 2 * int(_STRONGEST / _WIDTH + 3) + 1
#: Cells of the lowest level for each agent, at most.
_CELLS = 5
#: Members of a cell that cost as much as to draw once more.
_CROWD = 16.0
#: A sum of weights that is large enough not to have lost any to underflow.
_LEAST = 1e-280
#: Unsigned, for a signed index could count from the end, and is looked at for it.
_ONE, _THREE, _EIGHT = np.uint64(1), np.uint64(3), np.uint64(8)


class Rows(NamedTuple):
    """What drawing partners on a network needs besides opinions.

    Attributes
    ----------
    bounds : ndarray of float64
        The closeness at the lower end of each interval of distances, from that of the floor, where it is 1, to that of
        the range; empty where agents have biases of their own, or one that bounds are too loose for.
    sums : ndarray of float64
        The bounds before each candidate of a draw.
    """

    bounds: Any
    sums: Any


class Tree(NamedTuple):
    """What drawing partners on the complete graph needs besides opinions.

    Attributes
    ----------
    bounds, sums : ndarray of float64
        As in :class:`Rows`.
    heights, drawn : ndarray
        Candidates of a draw: the bound of one agent, and a cell of the tree or, above the number of cells, an agent.
    near : ndarray of uint32
        Cells that are too near to be drawn as a whole.
    counts : ndarray of uint32
        Agents in each cell. The cell of all is 0; the eight within cell c are 8 (c + 1) and those next to it.
    begins, rooms : ndarray of uint32
        Where the members of each cell of the lowest level begin, and for how many there is room.
    members : ndarray of uint32
        The agents in the cells of the lowest level.
    places, homes : ndarray of uint32
        Where each agent stands among the members, and its cell of the lowest level.
    frame : ndarray (4,) of float64
        Least opinion, greatest opinion, cells of the lowest level in a unit of opinion, and what rounding may do to a
        distance.
    marks : ndarray (3,) of uint64
        Levels below the cell of all, the first cell of the lowest one, and how many places of `members` are taken.
    """

    bounds: Any
    sums: Any
    heights: Any
    drawn: Any
    near: Any
    counts: Any
    begins: Any
    rooms: Any
    members: Any
    places: Any
    homes: Any
    frame: Any
    marks: Any


@inlined
def _interval(distance):
    """The interval that a distance lies in."""
    return np.float64(distance).view(np.uint64) >> _SHIFT


@inlined
def _closeness(distance, floor, gamma):
    """The closeness at a distance that is not below the floor, as a part of that at the floor."""
    return math.pow(floor / distance, gamma)


@allocating
def _bounds(contacts, p):
    """The table of bounds. It rests on the model alone: draws are the same wherever a run is interrupted."""
    alike = True
    for agent in range(contacts.n):
        alike &= at(p.gamma, agent) == at(p.gamma, 0) and at(p.d_min, agent) == at(p.d_min, 0)
    gamma, floor = at(p.gamma, 0), at(p.d_min, 0)
    first, last = _interval(floor), _interval(2.0 * max(p.limits[1] - p.limits[0], floor)) + _ONE
    tabled = alike and gamma <= _STRONGEST and last - first < _COVERED
    bounds = np.empty(_INTERVALS if tabled else 0)
    if tabled:
        for each in range(first, last + _ONE):
            end = np.uint64(np.uint64(each) << _SHIFT).view(np.float64)
            bounds[each] = _closeness(max(end, floor), floor, gamma)
    return bounds


@allocating
def rows_room(contacts, p):
    """The space of draws on a network."""
    return Rows(_bounds(contacts, p), np.empty(contacts.n + 2))


@allocating
def tree_room(contacts, p):
    """The space of draws on the complete graph."""
    n, levels, cells, lowest = contacts.n, 0, 1, 0
    while levels < 2 or cells * 8 <= _CELLS * n:
        levels, cells, lowest = levels + 1, cells * 8, 8 * (lowest + 1)
    most, marks = n + 2 + 8 * _NEAR * levels, np.empty(3, np.uint64)
    marks[0], marks[1] = levels, lowest
    counts, rooms, homes = np.empty(lowest + cells, np.uint32), np.empty(cells, np.uint32), np.empty(n, np.uint32)
    for empty in (counts, rooms, homes):
        for place in range(empty.size):
            empty[place] = 0
    return Tree(
        _bounds(contacts, p),
        np.empty(most),
        np.empty(most),
        np.empty(most, np.uint32),
        np.empty(_NEAR * levels + 2, np.uint32),
        counts,
        np.empty(cells, np.uint32),
        rooms,
        np.empty(8 * n, np.uint32),
        np.empty(n, np.uint32),
        homes,
        np.empty(4),
        marks,
    )


def _by_powers(variant: Variant) -> Callable[..., Any]:
    """Draws a partner by the power of every distance, relative to the nearest, so that none is too large for a float.

    ``draw(sums, contacts, i, opinions, floor, gamma, state)``
    """
    reach, partner, _ = topology(variant)
    weighted = variant.weighted

    def by_powers(sums, contacts, i, opinions, floor, gamma, state):
        count, own, nearest = reach(contacts, i), opinions[i], np.inf
        row = contacts.starts[i] if weighted else np.int64(0)
        total, place = 0.0, np.int64(0)
        for each in range(count):
            if not weighted or contacts.weights[row + each] > 0.0:
                nearest = min(nearest, max(abs(opinions[partner(contacts, i, each)] - own), floor))
        for each in range(count):
            # An edge without weight may be nearer than the nearest.
            distance = max(abs(opinions[partner(contacts, i, each)] - own), nearest)
            sums[each] = total
            total += _closeness(distance, nearest, gamma) * (contacts.weights[row + each] if weighted else 1.0)
        target = uniform(draw(state)) * total
        while place + 1 < count and sums[place + 1] <= target:
            place += 1
        return np.uint64(partner(contacts, i, place))

    return inlined(by_powers)


def meetings_on_rows(update: Callable[..., float], variant: Variant) -> Callable[..., None]:
    """Has listeners meet one after another on a network, each one of those it hears; `update` is one meeting.

    Returns
    -------
    callable
        ``meet(space, contacts, listeners, speakers, opinions, start, p, state)``: listeners and speakers (E,) are those
        of each event. Speakers are drawn from the stream of `state` and written down, save where gamma of the listener
        is 0. `opinions` (N,) are carried forward.
    """
    by_powers, weighted, two_sided = _by_powers(variant), variant.weighted, variant.two_sided
    (vary, fate_of, _, _), met, alone = meeting(update, variant)

    def meet(space, contacts, listeners, speakers, opinions, start, p, state):
        # As local names, arrays are counted as used once and not at each event. For the same reason it is all one loop.
        starts, others, weights = contacts.starts, contacts.others, contacts.weights
        bounds, sums, tabled = space.bounds, space.sums, space.bounds.size > 0
        for event in range(listeners.size):
            i, j = np.uint64(listeners[event]), np.uint64(speakers[event])
            floor, gamma, own = at(p.d_min, i), at(p.gamma, i), opinions[i]
            if vary:
                fate = fate_of(i, p, state)
                if fate != MEETS:
                    gamma = 0.0
            row, total = np.uint64(starts[i]), 0.0
            count = np.uint64(starts[i + _ONE]) - row
            if tabled and gamma > 0.0:
                for each in range(count):
                    edge = row + np.uint64(each)
                    distance = abs(opinions[others[edge]] - own)
                    bound = bounds[_interval(distance if distance > floor else floor)]
                    sums[np.uint64(each)] = total
                    total += bound * weights[edge] if weighted else bound
            if total > _LEAST:
                while True:
                    target, place = uniform(draw(state)) * total, np.uint64(0)
                    while place + _ONE < count and sums[place + _ONE] <= target:
                        place += _ONE
                    j = np.uint64(others[row + place])
                    distance = max(abs(opinions[j] - own), floor)
                    point = target - sums[place]
                    if weighted:
                        point /= weights[row + place]
                    if point < bounds[_interval(distance) + _ONE] or point < _closeness(distance, floor, gamma):
                        break
            elif gamma > 0.0:
                j = by_powers(sums, contacts, np.int64(i), opinions, floor, gamma, state)
            speakers[event], other = j, opinions[j]
            if vary and fate != MEETS:
                opinions[i] = alone(fate, i, own, start[i], p, np.uint64(0), state)
            else:
                opinions[i] = met(i, j, own, other, start[i], p, np.uint64(0), state)
                if two_sided:
                    opinions[j] = met(j, i, other, own, start[j], p, np.uint64(0), state)

    return inlined(meet)


@inlined
def _home(opinion, low, scale, lowest, last):
    """The cell of the lowest level that an opinion belongs to."""
    return lowest + np.uint64(min(max((opinion - low) * scale, 0.0), last))


@inlined
def plant(space, opinions):
    """Put every agent into the cell of its opinion.

    Done anew at the beginning of each step, draws rest on the opinions at that time and on what came since.
    """
    counts, begins, rooms, members, places = space.counts, space.begins, space.rooms, space.members, space.places
    homes, lowest, low, high = space.homes, space.marks[1], np.inf, -np.inf
    for agent in range(opinions.size):
        low, high = min(low, opinions[agent]), max(high, opinions[agent])
        cell = np.uint64(homes[agent])
        if cell > 0:
            rooms[cell - lowest] = 0
            while cell > 0:
                counts[cell] = 0
                cell = (cell >> _THREE) - _ONE
    cells, slack = np.float64(rooms.size), max(abs(low), abs(high)) * 2.0**-48
    # No cell is narrower than what rounding may do.
    low, high = low - slack, max(high, low + cells * slack) + slack
    scale = cells / max(high - low, 1e-280)
    space.frame[0], space.frame[1], space.frame[2], space.frame[3] = low, high, scale, slack
    for agent in range(opinions.size):
        cell = _home(opinions[agent], low, scale, lowest, cells - 1.0)
        homes[agent] = cell
        while cell > 0:
            counts[cell] += 1
            cell = (cell >> _THREE) - _ONE
    counts[0], taken = opinions.size, 0
    for agent in range(opinions.size):
        cell = np.uint64(homes[agent])
        leaf = cell - lowest
        if rooms[leaf] == 0:
            begins[leaf] = taken
            taken += np.int64(counts[cell])  # type: ignore[assignment]
        place = begins[leaf] + rooms[leaf]
        members[place], places[agent] = agent, place
        rooms[leaf] += 1
    space.marks[2] = taken


def meetings_in_tree(update: Callable[..., float], variant: Variant) -> Callable[..., None]:
    """Has listeners meet one after another on the complete graph, each one of all others; `update` is one meeting.

    Returns
    -------
    callable
        As :func:`meetings_on_rows` does. Agents must have been planted.
    """
    by_powers, two_sided = _by_powers(variant), variant.two_sided
    (vary, fate_of, _, _), met, alone = meeting(update, variant)

    def meet(space, contacts, listeners, speakers, opinions, start, p, state):
        bounds, sums, heights, drawn, near = space.bounds, space.sums, space.heights, space.drawn, space.near
        counts, begins, rooms, members = space.counts, space.begins, space.rooms, space.members
        places, homes, frame, tabled = space.places, space.homes, space.frame, space.bounds.size > 0
        levels, lowest, last = space.marks[0], space.marks[1], np.float64(space.rooms.size - 1)
        cells = np.uint64(counts.size)
        for event in range(listeners.size):
            i, j = np.uint64(listeners[event]), np.uint64(speakers[event])
            floor, gamma, own = at(p.d_min, i), at(p.gamma, i), opinions[i]
            if vary:
                fate = fate_of(i, p, state)
                if fate != MEETS:
                    gamma = 0.0
            total, count = 0.0, np.uint64(0)
            # Nobody meets itself.
            cell = np.uint64(homes[i])
            while cell > 0:
                counts[cell] -= 1
                cell = (cell >> _THREE) - _ONE
            counts[0] -= 1
            if 0.0 < gamma <= _STRONGEST:
                # Candidates, level by level: cells that are narrow enough for their distance. Nothing branches on what
                # cannot be guessed: each cell is written down, and kept by counting on.
                ahead, width, slack, share = own - frame[0], frame[1] - frame[0], frame[3], _WIDTH / gamma
                done, end, zero, level = np.uint64(0), _ONE, np.uint64(0), np.uint64(0)
                near[0], heights[0], drawn[0], sums[0] = 0, 1.0, 0, 0.0
                if width <= share * floor:
                    total, count, done = np.float64(counts[0]), _ONE, _ONE
                while level < levels:
                    level += _ONE
                    width *= 0.125
                    zero, stop = (zero + _ONE) * _EIGHT, end
                    while done < stop:
                        first = (np.uint64(near[done]) + _ONE) * _EIGHT
                        edge = np.float64(np.int64(first - zero)) * width - ahead
                        done += _ONE
                        for each in range(_EIGHT):
                            cell = first + np.uint64(each)
                            inside = counts[cell]
                            distance = max(max(edge, -edge - width) - slack, floor)
                            edge += width
                            bound = bounds[_interval(distance)] if tabled else _closeness(distance, floor, gamma)
                            whole, full = width <= share * distance, inside > 0
                            heights[count], drawn[count], sums[count], near[end] = bound, cell, total, cell
                            total += np.float64(inside) * (bound if whole else 0.0)
                            count += np.uint64(whole & full)
                            end += np.uint64(full & (not whole))
                # Cells of the lowest level that are too wide: their members, or, of a crowd, the cell all the same.
                for left in range(done, end):
                    cell = np.uint64(near[np.uint64(left)])
                    edge = np.float64(np.int64(cell - zero)) * width - ahead
                    distance = max(max(edge, -edge - width) - slack, floor)
                    bound = _closeness(distance, floor, gamma)
                    if _CROWD * bound < np.float64(counts[cell]) * _closeness(distance + width, floor, gamma):
                        heights[count], drawn[count], sums[count] = bound, cell, total
                        total += np.float64(counts[cell]) * bound
                        count += _ONE
                        continue
                    begin = np.uint64(begins[cell - lowest])
                    room = np.uint64(counts[cell]) + np.uint64(cell == homes[i])
                    for place in range(begin, begin + room):
                        j = np.uint64(members[np.uint64(place)])
                        distance = max(abs(opinions[j] - own), floor)
                        bound = bounds[_interval(distance)] if tabled else _closeness(distance, floor, gamma)
                        heights[count], drawn[count], sums[count] = bound, cells + j, total
                        total += bound if j != i else 0.0
                        count += np.uint64(j != i)
            if total > _LEAST:
                while True:
                    target, place, size = uniform(draw(state)) * total, np.uint64(0), count  # type: ignore[assignment]
                    while size > _ONE:
                        half = size >> _ONE
                        place += half * np.uint64(sums[place + half] <= target)  # type: ignore[assignment]
                        size -= half
                    point, cell = target - sums[place], np.uint64(drawn[place])
                    if cell < cells:
                        rank = min(np.uint64(point / heights[place]), np.uint64(counts[cell]) - _ONE)
                        point -= np.float64(np.int64(rank)) * heights[place]
                        while cell < lowest:
                            cell = (cell + _ONE) * _EIGHT
                            while rank >= counts[cell]:
                                rank -= np.uint64(counts[cell])
                                cell += _ONE
                        begin = np.uint64(begins[cell - lowest])
                        j = np.uint64(members[begin + rank])
                        if j == i:
                            j = np.uint64(members[begin + np.uint64(counts[cell])])
                    else:
                        j = cell - cells
                    distance = max(abs(opinions[j] - own), floor)
                    if tabled:
                        interval = _interval(distance)
                        if point < bounds[interval + _ONE]:
                            break
                        if point >= bounds[interval]:
                            continue
                    if point < _closeness(distance, floor, gamma):
                        break
            elif gamma > 0.0:
                j = by_powers(sums, contacts, np.int64(i), opinions, floor, gamma, state)
            cell = np.uint64(homes[i])
            while cell > 0:
                counts[cell] += 1
                cell = (cell >> _THREE) - _ONE
            counts[0] += 1
            speakers[event], other = j, opinions[j]
            if vary and fate != MEETS:
                opinions[i] = alone(fate, i, own, start[i], p, np.uint64(0), state)
            else:
                opinions[i] = met(i, j, own, other, start[i], p, np.uint64(0), state)
                if two_sided:
                    opinions[j] = met(j, i, other, own, start[j], p, np.uint64(0), state)
            # Those who have moved into another cell.
            for side in range(2):
                agent = i if side == 0 else j
                opinion, old = opinions[agent], np.uint64(homes[agent])
                new = _home(opinion, frame[0], frame[2], lowest, last)
                if new == old and frame[0] <= opinion <= frame[1]:
                    continue
                inside = np.uint64(counts[new])
                begin, room = np.uint64(begins[new - lowest]), np.uint64(rooms[new - lowest])
                if not frame[0] <= opinion <= frame[1] or (
                    inside == room and space.marks[2] + inside + inside + _ONE + _ONE > np.uint64(members.size)
                ):
                    plant(space, opinions)
                    break
                if inside == room:
                    fresh = space.marks[2]
                    room = inside + inside + _ONE + _ONE
                    for each in range(inside):
                        moved = np.uint64(members[begin + np.uint64(each)])
                        members[fresh + np.uint64(each)], places[moved] = moved, fresh + np.uint64(each)
                    begins[new - lowest], rooms[new - lowest], space.marks[2] = fresh, room, fresh + room
                    begin = fresh
                # The last of the old cell takes the place that is left.
                place = np.uint64(places[agent])  # type: ignore[assignment]
                moved = np.uint64(members[np.uint64(begins[old - lowest]) + np.uint64(counts[old]) - _ONE])
                members[place], places[moved] = moved, place
                if counts[old] == 1:
                    rooms[old - lowest] = 0
                members[begin + inside], places[agent], homes[agent] = agent, begin + inside, new
                while new != old:
                    counts[old] -= 1
                    counts[new] += 1
                    old, new = (old >> _THREE) - _ONE, (new >> _THREE) - _ONE

    return inlined(meet)
