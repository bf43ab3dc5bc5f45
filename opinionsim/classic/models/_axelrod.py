"""Culture in several features: Axelrod 1997, with the drift of Klemm et al. 2003."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from opinionsim.classic._declaration import ORDERS, PICKS, ClassicModel, Parameter
from opinionsim.classic._transition import Received, Transition
from opinionsim.classic.kernels._pairwise import by_pairs
from opinionsim.classic.kernels._random import uniform
from opinionsim.classic.kernels._stepping import Stop, step_kernel
from opinionsim.classic.kernels._until import one_number
from opinionsim.errors import SpecError
from opinionsim.foundation.compilation import allocating, at, inlined

if TYPE_CHECKING:
    from opinionsim.classic.kernels._process import Setup


class Parameters(NamedTuple):
    r"""Axelrod's dissemination of culture.

    A culture is a list of F features, each with one of q traits. An agent interacts with one that it hears with a
    probability equal to the share of features that they have in common. The agent then takes over the other's trait in
    one of the features in which they differ. With noise, agents sometimes adopt a random trait.

    - Equation: P(\text{interaction}) = \frac{1}{F} \sum_{f=1}^F \delta(x_{if}, x_{jf}):\quad x_{if} \leftarrow x_{jf}\
      \text{for one } f \text{ with } x_{if} \ne x_{jf}
    - Behaviour: Without noise, a population comes to rest when any two neighbours are alike or have nothing in common.
      Few traits lead to one culture, many to fragments. On the square lattice, the share of agents in the largest
      region vanishes at a q that grows with F: continuously for F = 2 (at a mean of 3.1 of Poisson-distributed traits)
      and abruptly for F = 10. On the complete graph and on networks with shortcuts, a single culture survives up to a
      larger q. The effect of noise depends on the time that a disturbance takes to heal, which grows with N. If fewer
      than one noise event occurs in this time, noise leads to monoculture at almost any q; if more occur, it maintains
      disorder.
    - Source: Axelrod 1997
    - Source: Castellano et al. 2000
    - Source: Klemm et al. 2003
    - Source: Peres & Fontanari 2015
    """

    features: Any = Parameter(5, "number of features of a culture", "F", "[1, 1000]", per_agent=False)
    traits: Any = Parameter(10, "traits that each feature can have, from 0 up", "q", "[2, 1000000]", per_agent=False)
    noise: Any = Parameter(
        0.0, "cultural drift: probability of a random trait in a random feature instead of a meeting", "r", "[0, 1]"
    )


@inlined
def _shared(opinions, one, other):
    """The number of features that two agents have in common."""
    count = np.int64(0)
    for d in range(opinions.shape[1]):
        count += np.int64(opinions[one, d] == opinions[other, d])
    return count


@inlined
def _meet(opinions, before, start, i, j, p, word, state, spare):
    # One number is drawn. What is left of it once it has chosen is even again, and chooses next.
    size, chance, noise = opinions.shape[1], uniform(word), at(p.noise, i)
    if chance < noise:
        place = chance / noise * size
        feature = np.int64(place)
        opinions[i, feature] = np.float64(np.int64((place - feature) * p.traits))
        return
    shared = _shared(before, i, j)
    chance = (chance - noise) / (1.0 - noise) * size
    if shared < size and chance < shared:
        skipped = np.int64(chance / shared * (size - shared))
        for d in range(size):
            if before[i, d] != before[j, d]:
                if skipped == 0:
                    opinions[i, d] = before[j, d]
                skipped -= 1


@inlined
def _partial(opinions, one, other):
    """Whether two agents share some features, but not all, so that a meeting can change one of them."""
    shared = _shared(opinions, one, other)
    return shared > 0 and shared < opinions.shape[1]


@cache
def _ties_at_rest(weighted: bool) -> Stop:
    """The check of whether a tie overlaps in part, beginning with the agent at which the last one was found."""

    def check(opinions, previous, contacts, p, timing, memory):
        begun = memory[0]
        for looked in range(contacts.n):
            agent = np.int64(begun + looked)
            agent -= contacts.n * np.int64(agent >= contacts.n)
            for place in range(contacts.starts[agent], contacts.starts[agent + 1]):
                met = contacts.weights[place] > 0.0 if weighted else True
                if met and _partial(opinions, agent, np.int64(contacts.others[place])):
                    memory[0] = agent
                    return False
        return True

    return Stop(inlined(check), one_number)


@allocating
def _first_holders(opinions, contacts, p):
    """Room for a pair that overlaps in part, and for the first agent that holds each trait of each feature."""
    return np.zeros(2, dtype=np.int64), np.empty((opinions.shape[1], p.traits), dtype=np.int64)


@inlined
def _all_at_rest(opinions, previous, contacts, p, timing, memory):
    """Whether any two agents overlap in part, beginning with the two that last did.

    None do if whoever holds a trait is like the first one that does.
    """
    pair, firsts = memory
    if _partial(opinions, pair[0], pair[1]):
        return False
    for d in range(firsts.shape[0]):
        for trait in range(firsts.shape[1]):
            firsts[d, trait] = -1
    for agent in range(contacts.n):
        for d in range(firsts.shape[0]):
            trait = np.int64(opinions[agent, d])  # type: ignore[assignment]
            first = firsts[d, trait]
            if first < 0:
                firsts[d, trait] = agent
            elif _partial(opinions, first, agent):
                pair[0], pair[1] = first, agent
                return False
    return True


_ALL_AT_REST = Stop(_all_at_rest, _first_holders)


def _frozen(setup: Setup) -> Stop:
    if np.any(np.asarray(setup.p.noise) > 0):
        raise SpecError("until: frozen cannot be reached with noise, which keeps changing traits; set noise to 0")
    variant = setup.variant()
    return _ALL_AT_REST if variant.complete else _ties_at_rest(variant.weighted)


def _transition(received: Received, p: Parameters) -> Transition:
    """Opinions are cultures (T, F), and a message is one."""
    own, said = received.own, received.said[:, 0]
    runs, size = own.shape
    differ = own != said
    shared = 1.0 - differ.mean(axis=1)
    calm = 1.0 - np.broadcast_to(p.noise, (runs,))
    each = np.where(differ, (calm * shared / np.maximum(differ.sum(axis=1), 1))[:, None], 0.0)
    # To stay, to take one feature over, or to come to any trait in any feature.
    values = np.repeat(own[:, None], 1 + size + size * p.traits, axis=1)
    chances = np.full(values.shape[:2], (1.0 - calm)[:, None] / (size * p.traits))
    chances[:, 0], chances[:, 1 : 1 + size] = calm - each.sum(axis=1), each
    for d in range(size):
        values[:, 1 + d, d] = said[:, d]
        drifted = 1 + size + d * p.traits
        values[:, drifted : drifted + p.traits, d] = np.arange(p.traits)
    return Transition(values, chances)


_KERNEL = step_kernel(lambda variant: by_pairs(variant, _meet, draws=True))

MODEL = ClassicModel(
    name="axelrod",
    family="similarity-biased",
    parameters=Parameters,
    range=(0.0, 9.0),
    kernel=_KERNEL,
    vector=_KERNEL,
    transition=_transition,
    orders=ORDERS,
    picks=PICKS,
    states="traits",
    frozen=_frozen,
    at_rest="any two agents that can meet have all features in common, or none.",
    measures=("regions", "largest_region", "partial_overlap"),
    example={"n": 100, "network": "lattice", "steps": 1000},
)
