"""Panels: several different neighbours at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from opinionsim.classic.kernels._contacts import Variant, topology
from opinionsim.classic.kernels._random import draw, index, uniform
from opinionsim.classic.kernels._stepping import copy
from opinionsim.foundation.compilation import allocating, inlined


@inlined
def draw_places(chances, state, places):
    """Draw different indices into `places` in proportion to `chances`, which change; return their number."""
    for count in range(places.size):
        total = 0.0
        for place in range(chances.size):
            total += chances[place]
        if total <= 0.0:
            return count
        target, passed, found = uniform(draw(state)) * total, 0.0, 0
        for place in range(chances.size):
            if chances[place] > 0.0:
                found = place
                passed += chances[place]
                if passed > target:
                    break
        places[count] = found
        chances[found] = 0.0
    return places.size


@inlined
def _listed(items, count, item):
    """Whether an item is among the first `count`."""
    for place in range(count):  # noqa: SIM110 - compiled, which generators are not
        if items[place] == item:
            return True
    return False


def panel_drawer(variant: Variant) -> Callable[..., int]:
    """``draw(contacts, agent, state, members)``: draws different partners of an agent, in proportion to weights.

    It returns the number of partners drawn: as many as `members` has room for, or all partners if there are fewer.
    """
    reach, partner, _ = topology(variant)
    weighted = variant.weighted

    def draw_panel(contacts, agent, state, members):
        wanted, size = members.size, reach(contacts, agent)
        if weighted:
            first = contacts.starts[agent]
            chances = np.empty(size)
            copy(contacts.weights[first : first + size], chances)
            count = draw_places(chances, state, members[:size])
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

    return allocating(draw_panel)
