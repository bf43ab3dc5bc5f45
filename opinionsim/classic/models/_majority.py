"""Local majorities: the majority rule of Galam and of Krapivsky & Redner, in groups of neighbours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from opinionsim.classic._declaration import ENDS, ClassicModel, Parameter
from opinionsim.classic._transition import Received, Transition
from opinionsim.classic.kernels._contacts import Variant
from opinionsim.classic.kernels._frozen import by_agents
from opinionsim.classic.kernels._groups import panel_drawer
from opinionsim.classic.kernels._influences import STATE_NOISE, ZEALOT
from opinionsim.classic.kernels._random import draw, index, uniform
from opinionsim.classic.kernels._stepping import Stop, step_kernel
from opinionsim.errors import SpecError
from opinionsim.foundation.compilation import allocating, at, inlined

if TYPE_CHECKING:
    from opinionsim.classic.kernels._process import Setup


class Parameters(NamedTuple):
    r"""Majority rule.

    A random agent and r - 1 of its neighbours form a group, and all of them take the opinion of the majority in the
    group. An agent with fewer neighbours forms a group with all of them. A step is N / r groups, rounded up.

    - Equation: x_k \leftarrow \operatorname{majority}\{x_l : l \in G\}\quad \text{for all } k \in G = \{i, j_1, \dots,
      j_{r-1}\},\; j \in N(i)
    - Behaviour: On the complete graph, the larger side wins; in groups of 3 its share c drifts at 3 c^2 (1 - c) - 3 c
      (1 - c)^2 agents per group. If ties favour one side, that side can win from a minority: in groups of 4 from a
      share of (5 - sqrt(13)) / 6, about 0.23.
    - Source: Galam 2002
    - Source: Krapivsky & Redner 2003
    - Source: Galam & Jacobs 2007
    """

    r: Any = Parameter(3, "size of a group, including the agent that forms it", "r", "[2, inf)", per_agent=False)
    ties: Any = Parameter(
        "keep",
        "what an evenly split group does: keep its opinions, take either at random, or take the high end",
        choices=("keep", "random", "bias"),
    )
    noise: Any = replace(
        STATE_NOISE,
        meaning="probability that a group member takes a random end of the range, not the group's opinion",
    )
    zealot: Any = ZEALOT


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


@allocating
def _members(opinions, contacts, p, spare):
    return np.empty(p.r - 1, dtype=np.int64)


def _make(variant: Variant) -> tuple[Callable[..., None], Callable[..., Any]]:
    draw_panel, noisy, zealots = panel_drawer(variant), variant.option("noise"), variant.option("zealot")

    def settle(opinions, agent, decision, p, spare):
        """Return the opinion of a group member after a decision; -1 means no decision."""
        if zealots and at(p.zealot, agent) == 1:
            return
        if noisy and uniform(draw(spare)) < at(p.noise, agent):
            opinions[agent] = np.float64(uniform(draw(spare)) < 0.5)
            return
        if decision >= 0:
            opinions[agent] = decision

    settle = inlined(settle)

    def step(opinions, before, start, contacts, timing, p, queue, state, spare, members):
        # Everybody is to be in about one group a step.
        for _ in range((timing.events + p.r - 1) // p.r):
            agent = np.int64(contacts.firsts[index(draw(state), contacts.firsts.size)])
            count = draw_panel(contacts, agent, state, members)
            high = np.int64(opinions[agent] > 0.5)
            for place in range(count):
                high += np.int64(opinions[members[place]] > 0.5)
            decision = _decision(high, count + 1, p.ties, spare)
            settle(opinions, agent, decision, p, spare)
            for place in range(count):
                settle(opinions, members[place], decision, p, spare)

    return inlined(step), _members


@inlined
def _flips(agent, high, known, n_high, p):
    """Whether a group that an agent can call is split, and comes to a decision."""
    called = min(p.r - 1, known)
    fewest, most = max(0, called - (known - n_high)) + high, min(called, n_high) + high
    for upper in range(max(fewest, 1), min(most, called) + 1):  # noqa: SIM110 - compiled, which generators are not
        if 2 * upper != called + 1 or p.ties != 0:
            return True
    return False


def _frozen(setup: Setup) -> Stop:
    if setup.variant().option("zealot"):
        raise SpecError("until: frozen cannot be detected in majority with zealots: no exact criterion is known")
    return by_agents(setup.variant(), _flips)


def _transition(received: Received, p: Parameters) -> Transition:
    """Messages are what the others of the group say."""
    lead = received.said.sum(axis=1) + received.own - (1 + received.present.sum(axis=1)) / 2
    tied = (received.own, 0.5, 1.0)[p.ties]
    decided = np.where(lead == 0, tied, lead > 0)
    up = np.where(p.zealot == 1, received.own, p.noise / 2 + (1 - p.noise) * decided)
    return Transition(np.broadcast_to([0.0, 1.0], (len(up), 2)), np.stack([1 - up, up], axis=1))


MODEL = ClassicModel(
    name="majority",
    family="assimilative",
    parameters=Parameters,
    kernel=step_kernel(_make),
    transition=_transition,
    units=ENDS,
    frozen=_frozen,
    at_rest="no group that can form is split and would reach a decision, including a tie decided by chance or bias.",
    orders=("random",),
    states="two",
    example={"n": 225, "steps": 30, "r": 5},
)
