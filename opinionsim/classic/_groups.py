"""Several partners at once: panels of neighbours, with or without repetition."""

from __future__ import annotations

from opinionsim.classic._contacts import meet, partner, reach
from opinionsim.classic._random import draw, index, uniform
from opinionsim.compilation import inlined


@inlined
def draw_places(chances, state, places):
    """Draw different places into `places` in proportion to chances, which are used up; returns how many they are."""
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
        first = contacts.starts[agent]
        count = draw_places(contacts.weights[first : first + size].copy(), state, members[:size])
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
