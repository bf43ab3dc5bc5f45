"""Bounded confidence where a platform brings similar opinions together: Sirbu et al. 2019."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from opinionsim.classic import _deffuant as deffuant
from opinionsim.classic._contacts import Variant, heaviest, topology
from opinionsim.classic._model import ClassicModel, Parameter
from opinionsim.classic._pairwise import block_drawer, pairwise_kernel
from opinionsim.classic._random import draw
from opinionsim.classic._stepping import Machine, Stop, step_kernel
from opinionsim.compilation import at, inlined


class Parameters(NamedTuple):
    """Parameters, as the kernel takes them."""

    gamma: Any = Parameter(1.0, "strength of the bias towards similar partners; 0 is none", r"\gamma")
    d_min: Any = Parameter(
        1e-5, "distance below which partners are equally similar", r"d_{\min}", "(0, inf)", scaled=True
    )
    epsilon: Any = deffuant.EPSILON
    mu: Any = deffuant.MU
    threshold: Any = deffuant.THRESHOLD


@inlined
def _closeness(distance, nearest, gamma):
    """The closeness of a partner as a part of that of the nearest, so that no power goes beyond what a float holds."""
    ratio = nearest / distance
    return ratio if gamma == 1.0 else math.pow(ratio, gamma)


@inlined
def _room(opinions, contacts, p, spare):
    n = contacts.n
    words, firsts, seconds = np.empty(1, np.uint64), np.empty(1, np.uint32), np.empty(1, np.uint32)
    return words, firsts, seconds, np.empty(n), np.empty(n + 1)


def _make(variant: Variant) -> tuple[Callable[..., None], Callable[..., Any]]:
    reach, partner, _ = topology(variant)
    draw_block, weighted, two_sided = block_drawer(variant), variant.weighted, variant.two_sided

    def biased(contacts, first, opinions, gamma, floor, word, distances, sums):
        """One of those whom an agent hears, in proportion to weight and to similarity."""
        own, nearest, count = opinions[first], np.inf, reach(contacts, first)
        row = contacts.starts[first] if weighted else np.int64(0)
        for place in range(count):
            distances[place] = max(abs(opinions[partner(contacts, first, place)] - own), floor)
            if not weighted or contacts.weights[row + place] > 0.0:
                nearest = min(nearest, distances[place])
        sums[0] = 0.0
        for place in range(count):
            closeness = _closeness(distances[place], nearest, gamma)
            sums[place + 1] = sums[place] + (contacts.weights[row + place] * closeness if weighted else closeness)
        return partner(contacts, first, heaviest(sums, 0, count, word))

    biased = inlined(biased)

    def step(opinions, before, start, contacts, timing, p, queue, state, spare, space):
        words, firsts, seconds, distances, sums = space
        for event in range(timing.events):
            # A pair as without bias, and the partner once more where there is one.
            draw_block(contacts, timing, queue, event, state, words, firsts, seconds)
            i, j = np.int64(firsts[0]), np.int64(seconds[0])
            if at(p.gamma, i) > 0.0:
                j = biased(contacts, i, opinions, at(p.gamma, i), at(p.d_min, i), draw(state), distances, sums)
            own, other = opinions[i], opinions[j]
            opinions[i] = deffuant.update(i, j, own, other, start[i], p, np.uint64(0), spare)
            if two_sided:
                opinions[j] = deffuant.update(j, i, other, own, start[j], p, np.uint64(0), spare)

    return inlined(step), _room


_free, _on_given_pairs = step_kernel(_make), pairwise_kernel(deffuant.update)


def _kernel(variant: Variant, stop: Stop | None, machine: Machine) -> Callable[..., None]:
    return (_on_given_pairs if variant.given else _free)(variant, stop, machine)


MODEL = ClassicModel(
    name="algorithmic-bias",
    title="Bounded confidence with algorithmic bias",
    family="similarity-biased",
    summary="An agent meets one of those it hears, the more probably the closer their opinions are; then both move "
    "closer if they are no farther apart than the confidence, as in the Deffuant-Weisbuch model.",
    equation=r"P(j \mid i) \propto w_{ij} \max(|x_j - x_i|, d_{\min})^{-\gamma};\quad "
    r"|x_j - x_i| \le \varepsilon:\ x_i \leftarrow x_i + \mu (x_j - x_i),\ x_j \leftarrow x_j + \mu (x_i - x_j)",
    behaviour="gamma = 0 is the Deffuant-Weisbuch model with the listener drawn first. A stronger bias leaves more "
    "clusters, slows their formation, and splits populations that would agree without it. The mean is conserved by "
    "two-sided meetings of equal mu.",
    source=(
        "Sirbu, Pedreschi, Giannotti & Kertesz (2019). Algorithmic bias amplifies opinion fragmentation and "
        "polarization: a bounded confidence model. PLoS ONE 14(3), e0213246. doi:10.1371/journal.pone.0213246",
    ),
    parameters=Parameters,
    kernel=_kernel,
    update=deffuant.update,
    transition=deffuant.MODEL.transition,
    frozen=deffuant.MODEL.frozen,
    at_rest=deffuant.MODEL.at_rest,
    orders=("random", "permutation", "sequential"),
    picks=("listener",),
    sides=("two", "one"),
    conserves=frozenset({"mean"}),
    example={"steps": 100, "epsilon": 0.35, "gamma": 1.2},
)
