"""Meetings with partners drawn in proportion to a power of closeness, exactly, without a power for every distance.

The weight of an agent at distance d is w max(d, floor)^-gamma. Bounds of the power are read from a table, by the
exponent and the first mantissa bits of the distance. A partner is drawn in proportion to the upper bounds, by a point
between 0 and their sum, and stays drawn if the point lies within its weight. The lower bound settles most draws, so
that few need the power itself. Each draw looks at every candidate once.
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
#: A sum of weights that is large enough not to have lost any to underflow.
_LEAST = 1e-280
#: Unsigned, for a signed index could count from the end, and is looked at for it.
_ONE = np.uint64(1)


class Candidates(NamedTuple):
    """Data for drawing partners, in addition to opinions.

    Attributes
    ----------
    bounds : ndarray of float64
        The closeness at the lower end of each interval of distances, from the floor, where it is 1, to the range. Empty
        if agents have different biases, or a bias for which the bounds are too loose.
    sums : ndarray of float64
        The bounds before each candidate of a draw.
    """

    bounds: Any
    sums: Any


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
def make_candidates(contacts, p):
    """Make the working memory of draws."""
    return Candidates(_bounds(contacts, p), np.empty(contacts.n + 2))


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


@inlined
def _any_other(others, row, each, i):
    return each + np.uint64(each >= i)


@inlined
def _heard(others, row, each, i):
    return np.uint64(others[row + each])


def meetings_by_closeness(update: Callable[..., float], variant: Variant) -> Callable[..., None]:
    """Make a function in which listeners one after another meet an agent that they hear; `update` is one meeting.

    Returns
    -------
    callable
        ``meet(space, contacts, listeners, speakers, opinions, start, p, state)``: updates `opinions` (N,) in place.
        Listeners and speakers (E,) are those of each event. The function draws speakers from the stream of `state` and
        stores them, unless the listener's gamma is 0.
    """
    by_powers, weighted, two_sided = _by_powers(variant), variant.weighted, variant.two_sided
    complete, candidate = variant.complete, _any_other if variant.complete else _heard
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
            row, total, count = np.uint64(0), 0.0, np.uint64(contacts.n) - _ONE
            if not complete:
                row = np.uint64(starts[i])
                count = np.uint64(starts[i + _ONE]) - row
            if tabled and gamma > 0.0:
                for each in range(count):
                    place = np.uint64(each)
                    distance = abs(opinions[candidate(others, row, place, i)] - own)
                    bound = bounds[_interval(distance if distance > floor else floor)]
                    sums[place] = total
                    total += bound * weights[row + place] if weighted else bound
            if total > _LEAST:
                while True:
                    target, place = uniform(draw(state)) * total, np.uint64(0)
                    if complete:
                        size = count
                        while size > _ONE:
                            half = size >> _ONE
                            place += half * np.uint64(sums[place + half] <= target)
                            size -= half
                    else:
                        # A few candidates are sooner gone through than halved.
                        while place + _ONE < count and sums[place + _ONE] <= target:
                            place += _ONE
                    j = candidate(others, row, place, i)
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
