"""Bounded confidence where a platform brings similar opinions together: Sirbu et al. 2019."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from opinionsim.classic import _deffuant as deffuant
from opinionsim.classic._contacts import heaviest, partner, reach
from opinionsim.classic._model import ClassicModel, Parameter
from opinionsim.classic._pairwise import draw_block
from opinionsim.classic._random import draw
from opinionsim.classic._stepping import finish_step, start_step
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
def _partner(contacts, first, opinions, gamma, floor, word, space):
    """One of those whom an agent hears, in proportion to weight and to similarity."""
    distances, sums = space
    own, nearest, count = opinions[first], np.inf, reach(contacts, first)
    row, weighted = np.int64(0) if contacts.complete else contacts.starts[first], contacts.weights.size > 0
    for place in range(count):
        distances[place] = max(abs(opinions[partner(contacts, first, place)] - own), floor)
        if not weighted or contacts.weights[row + place] > 0.0:
            nearest = min(nearest, distances[place])
    sums[0] = 0.0
    for place in range(count):
        closeness = _closeness(distances[place], nearest, gamma)
        sums[place + 1] = sums[place] + (contacts.weights[row + place] * closeness if weighted else closeness)
    return partner(contacts, first, heaviest(sums, 0, count, word))


def _kernel(opinions, start, contacts, timing, p, pairs, state, spare, record):
    queue, space = contacts.firsts.copy(), (np.empty(contacts.n), np.empty(contacts.n + 1))
    words, listeners, speakers = np.empty(1, np.uint64), np.empty(1, np.uint32), np.empty(1, np.uint32)
    for step in range(timing.steps):
        start_step(opinions, opinions, contacts, timing, state, queue)
        given = pairs[step : step + 1].reshape(-1)
        for event in range(timing.events):
            # A pair as without bias, and the partner once more where there is one.
            draw_block(contacts, timing, given, queue, event, state, words, listeners, speakers)
            i, j = np.int64(listeners[0]), np.int64(speakers[0])
            if given.size == 0 and at(p.gamma, i) > 0.0:
                j = _partner(contacts, i, opinions, at(p.gamma, i), at(p.d_min, i), draw(state), space)
            own, other = opinions[i], opinions[j]
            opinions[i] = deffuant.update(i, j, own, other, start[i], p, np.uint64(0), spare)
            if timing.two_sided:
                opinions[j] = deffuant.update(j, i, other, own, start[j], p, np.uint64(0), spare)
        finish_step(opinions, step, timing, record)


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
    prepare=deffuant.MODEL.prepare,
    orders=("random", "permutation", "sequential"),
    picks=("listener",),
    sides=("two", "one"),
    conserves=frozenset({"mean"}),
    example={"steps": 100, "epsilon": 0.35, "gamma": 1.2},
)
