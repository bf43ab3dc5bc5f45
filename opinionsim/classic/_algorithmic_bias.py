"""Bounded confidence where a platform brings similar opinions together: Sirbu et al. 2019."""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from opinionsim.classic import _deffuant as deffuant
from opinionsim.classic._contacts import draw_pairs, order_queue
from opinionsim.classic._model import ClassicModel, Parameter, Source
from opinionsim.classic._random import draw, fill, uniform
from opinionsim.compilation import at, inlined

__all__ = ["MODEL", "Parameters"]


class Parameters(NamedTuple):
    """Of the model, as its kernel takes them."""

    gamma: Annotated[np.ndarray, Parameter(1.0, "strength of the bias towards similar partners; 0 is none", r"\gamma",
                                           low=0.0)]  # fmt: skip
    d_min: Annotated[np.ndarray, Parameter(1e-5, "distance below which partners are equally similar", r"d_{\min}",
                                           low=0.0, open_low=True, scaled=True)]  # fmt: skip
    epsilon: Annotated[np.ndarray, Parameter(0.2, "confidence: largest distance at which opinions meet",
                                             r"\varepsilon", low=0.0, scaled=True)]  # fmt: skip
    mu: Annotated[np.ndarray, Parameter(0.5, "part of the way that is gone", r"\mu", 0.0, 1.0, open_low=True)]
    threshold: Annotated[int, Parameter("<=", "whether opinions at exactly that distance meet", choices=("<=", "<"))]


@inlined
def _update(i, j, own, other, start, p, word, spare):
    near = np.float64(abs(other - own) < at(p.epsilon, i))
    return own + at(p.mu, i) * near * (other - own)


@inlined
def _closeness(distance, nearest, gamma):
    """Relative to that of the nearest, which no power can carry beyond what a float holds."""
    ratio = nearest / distance
    return ratio if gamma == 1.0 else math.pow(ratio, gamma)


@inlined
def _distances(contacts, first, opinions, floor, found):
    """Fill in the distances of all whom an agent hears, at least `floor`; returns the least of those with a weight."""
    own, nearest = opinions[first], np.inf
    if contacts.complete:
        for place in range(contacts.n - 1):
            found[place] = max(abs(opinions[place + np.int64(place >= first)] - own), floor)
            nearest = min(nearest, found[place])
        return nearest
    row, weighted = contacts.starts[first], contacts.weights.size > 0
    for place in range(contacts.starts[first + 1] - row):
        found[place] = max(abs(opinions[contacts.others[row + place]] - own), floor)
        if not weighted or contacts.weights[row + place] > 0.0:
            nearest = min(nearest, found[place])
    return nearest


@inlined
def _partner(contacts, first, opinions, gamma, floor, word, sums):
    """One of those whom an agent hears, in proportion to weight and to similarity; `sums` is room for all of them."""
    nearest, total = _distances(contacts, first, opinions, floor, sums), 0.0
    row = np.int64(0) if contacts.complete else contacts.starts[first]
    count = contacts.n - 1 if contacts.complete else contacts.starts[first + 1] - row
    weighted = contacts.weights.size > 0
    for place in range(count):
        closeness = _closeness(sums[place], nearest, gamma)
        total += contacts.weights[row + place] * closeness if weighted else closeness
        sums[place] = total
    # The first place whose sum exceeds the point drawn: one of no weight is never met.
    target, low, high = uniform(word) * total, 0, count - 1
    while low < high:
        middle = (low + high) >> 1
        if sums[middle] <= target:
            low = middle + 1
        else:
            high = middle
    if contacts.complete:
        return low + np.int64(low >= first)
    return np.int64(contacts.others[contacts.starts[first] + low])


@inlined
def _room(contacts):
    """How many partners an agent has at most."""
    if contacts.complete:
        return contacts.n
    most = np.int64(0)
    for agent in range(contacts.n):
        most = max(most, contacts.starts[agent + 1] - contacts.starts[agent])
    return most


def _kernel(opinions, start, contacts, timing, p, pairs, state, spare, record):
    queue = contacts.firsts.copy()
    sums = np.empty(_room(contacts))
    words, listeners, speakers = np.empty(1, np.uint64), np.empty(1, np.uint32), np.empty(1, np.uint32)
    given = pairs.shape[0] > 0
    for step in range(timing.steps):
        order_queue(contacts, timing.order, state, queue)
        for event in range(timing.events):
            if given:
                j, i = np.int64(pairs[step, 0]), np.int64(pairs[step, 1])
            else:
                # A pair as without bias, and the partner once more where there is one.
                fill(state, words)
                draw_pairs(contacts, timing.order, queue, event, words, listeners, speakers)
                i, j = np.int64(listeners[0]), np.int64(speakers[0])
                if at(p.gamma, i) > 0.0:
                    j = _partner(contacts, i, opinions, at(p.gamma, i), at(p.d_min, i), draw(state), sums)
            own, other = opinions[i], opinions[j]
            opinions[i] = _update(i, j, own, other, start[i], p, np.uint64(0), spare)
            if timing.two_sided:
                opinions[j] = _update(j, i, other, own, start[j], p, np.uint64(0), spare)
        if (step + 1) % timing.every == 0:
            record[(step + 1) // timing.every - 1] = opinions


MODEL = ClassicModel(
    name="algorithmic-bias",
    title="Bounded confidence with algorithmic bias",
    kind="continuous",
    family="similarity-biased",
    summary="An agent meets one of those it hears, the more probably the closer their opinions are; then both move "
    "closer if they are no farther apart than the confidence, as in the Deffuant-Weisbuch model.",
    equation=r"P(j \mid i) \propto w_{ij} \max(|x_j - x_i|, d_{\min})^{-\gamma};\quad "
    r"|x_j - x_i| \le \varepsilon:\ x_i \leftarrow x_i + \mu (x_j - x_i),\ x_j \leftarrow x_j + \mu (x_i - x_j)",
    behaviour="gamma = 0 is the Deffuant-Weisbuch model with the listener drawn first. A stronger bias leaves more "
    "clusters, slows their formation, and splits populations that would agree without it. The mean is conserved by "
    "two-sided meetings of equal mu.",
    source=(
        Source(
            "Sirbu, Pedreschi, Giannotti & Kertesz (2019). Algorithmic bias amplifies opinion fragmentation "
            "and polarization: a bounded confidence model. PLoS ONE 14(3), e0213246",
            "10.1371/journal.pone.0213246",
        ),
    ),
    parameters=Parameters,
    range=(0.0, 1.0),
    kernel=_kernel,
    update=_update,
    transition=deffuant.MODEL.transition,
    prepare=deffuant.MODEL.prepare,
    orders=("random", "permutation", "sequential"),
    picks=("listener",),
    sides=("two", "one"),
    conserves=frozenset({"mean"}),
    example={"n": 200, "network": "complete", "initial": "uniform", "steps": 100, "epsilon": 0.35, "gamma": 1.2},
)
