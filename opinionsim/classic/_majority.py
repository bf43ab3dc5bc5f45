"""Local majorities: the majority rule of Galam and of Krapivsky & Redner, in groups of neighbours."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from opinionsim.classic._groups import panel, received
from opinionsim.classic._model import ClassicModel, Parameter, Source
from opinionsim.classic._qvoter import _decode, _encode
from opinionsim.classic._random import draw, index, uniform
from opinionsim.classic._transition import Transition
from opinionsim.compilation import inlined

__all__ = ["MODEL", "Parameters"]

_KEEP, _RANDOM, _BIAS = 0, 1, 2


class Parameters(NamedTuple):
    """Of the model, as its kernel takes them."""

    r: Annotated[int, Parameter(3, "size of a group, the agent that calls it included", "r", low=2, per_agent=False)]
    ties: Annotated[int, Parameter("keep", "what an evenly split group does: keeps its opinions, takes either at "
                                   "random, or takes the high end", choices=("keep", "random", "bias"))]  # fmt: skip


@inlined
def _decision(high, size, ties, spare):
    """What a group of `size` with `high` at the high end comes to: 0, 1, or -1 for no decision."""
    if 2 * high != size:
        return np.int64(2 * high > size)
    if ties == 0:
        return np.int64(-1)
    if ties == 1:
        return np.int64(uniform(draw(spare)) < 0.5)
    return np.int64(1)


def _kernel(opinions, start, contacts, timing, p, pairs, state, spare, record):
    members = np.empty(p.r - 1, dtype=np.int64)
    # Everybody is to be in about one group a sweep.
    groups = (timing.events + p.r - 1) // p.r
    for step in range(timing.steps):
        for _ in range(groups):
            agent = np.int64(contacts.firsts[index(draw(state), contacts.firsts.size)])
            count = panel(contacts, agent, False, state, members)
            high = np.int64(opinions[agent] > 0.5)
            for place in range(count):
                high += np.int64(opinions[members[place]] > 0.5)
            decision = _decision(high, count + 1, p.ties, spare)
            if decision < 0:
                continue
            opinions[agent] = decision
            for place in range(count):
                opinions[members[place]] = decision
        if (step + 1) % timing.every == 0:
            record[(step + 1) // timing.every - 1] = opinions


def _transition(before: np.ndarray, messages: np.ndarray, weights: Any, p: Parameters, span: Any) -> Transition:
    """Messages are what the others of the group say."""
    low, high = span
    said, present = received(messages)
    lead = ((said == high) * present).sum(axis=1) + (before == high) - (1 + present.sum(axis=1)) / 2
    up = np.where(lead > 0, 1.0, 0.0)
    tied = lead == 0
    if p.ties == _KEEP:
        up = np.where(tied, before == high, up)
    elif p.ties == _RANDOM:
        up = np.where(tied, 0.5, up)
    else:
        up = np.where(tied, 1.0, up)
    ends = np.broadcast_to([low, high], (len(before), 2)).astype(float)
    return Transition(ends, np.stack([1 - up, up], axis=1))


MODEL = ClassicModel(
    name="majority",
    title="Majority rule",
    kind="discrete",
    family="assimilative",
    summary="A random agent and r - 1 of its neighbours form a group, and all of them take the opinion of its "
    "majority. An agent with fewer neighbours calls all of them. A sweep is N / r groups, rounded up.",
    equation=r"x_k \leftarrow \operatorname{majority}\{x_l : l \in G\}\quad \text{for all } k \in G = \{i, j_1, \dots, "
    r"j_{r-1}\},\; j \in N(i)",
    behaviour="On the complete graph the larger side wins; in groups of 3 its share c drifts at 3 c^2 (1 - c) - "
    "3 c (1 - c)^2 agents a group. With ties in favour of one side, that side wins from a minority on: in groups of 4 "
    "from a share of (5 - sqrt(13)) / 6, about 0.23.",
    source=(
        Source(
            "Galam (2002). Minority opinion spreading in random geometry. European Physical Journal B 25, 403-406",
            "10.1140/epjb/e20020045",
        ),
        Source(
            "Krapivsky & Redner (2003). Dynamics of majority rule in two-state interacting spin systems. "
            "Physical Review Letters 90, 238701",
            "10.1103/PhysRevLett.90.238701",
        ),
    ),
    parameters=Parameters,
    range=(0.0, 1.0),
    kernel=_kernel,
    transition=_transition,
    encode=_encode,
    decode=_decode,
    orders=("random",),
    states="two",
    example={"n": 225, "network": "complete", "initial": "uniform", "steps": 30, "r": 5},
)
