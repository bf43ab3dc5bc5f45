"""Perceived risk between an institution and others: Vilone, Giardini, Paolucci & Conte 2016."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from opinionsim.classic._declaration import SHARES, ClassicModel, Parameter
from opinionsim.classic._transition import Received
from opinionsim.classic.kernels._contacts import Variant
from opinionsim.classic.kernels._pairwise import by_pairs
from opinionsim.classic.kernels._random import draw, uniform
from opinionsim.classic.kernels._stepping import step_kernel
from opinionsim.foundation.compilation import at, inlined


class Parameters(NamedTuple):
    r"""Cognitive opinion dynamics.

    Opinions are perceived risks. In every step, the institution first informs all agents. Then pairs meet, in which an
    agent is more likely to tell its opinion the greater the risk it perceives. The receiver weighs this information by
    its trust in the source, and then alarms or calms itself depending on its sensitivity.

    - Equation: x \leftarrow F_R(x_i + T_i (I - x_i)),\quad \text{then with probability } x_j^{1/\beta_j}:\ x_i
      \leftarrow F_R(x_i + (1 - T_i)(x_j - x_i)),\quad F_R(x) = \begin{cases} (1 + x) / 2 & R_i = 1\\ x & R_i = 0\\ x /
      2 & R_i = -1 \end{cases}
    - Behaviour: Neutral agents with any trust in the institution come to agree with it. If only the institution speaks,
      an agent that alarms itself approaches (1 + T I) / (1 + T), and one that calms itself approaches T I / (1 + T);
      every message from another agent moves them farther. Sensitivity matters more than trust, and alarm spreads more
      easily than calm because alarmed agents talk. NDlib's model of the same name takes one of the two opinions in a
      meeting from the previous step.
    - Source: Vilone et al. 2016
    - Source: Giardini & Vilone 2021
    """

    information: Any = Parameter(
        (), "what the institution tells all agents at the start of every step; nothing by default", "I", opinions=True
    )
    trust: Any = Parameter(0.5, "trust in the institution; trust in other agents is 1 minus this", "T_i", "[0, 1]")
    sensitivity: Any = Parameter(
        0,
        "risk sensitivity: 1 for an agent that alarms itself, -1 for one that calms itself, 0 for a neutral one",
        "R_i",
        "[-1, 1]",
    )
    beta: Any = Parameter(1.0, "tendency to inform others", r"\beta_i", "(0, 1]")


@inlined
def _felt(agent, opinion, p):
    """An opinion that an agent was told, after its sensitivity: half the way to 1 or to 0, or as it is."""
    sensitivity = at(p.sensitivity, agent)
    if sensitivity == 0:
        return opinion
    return 0.5 * (opinion + np.float64(sensitivity > 0))


@inlined
def _told(agent, own, said, trust, p):
    return _felt(agent, own + trust * (said - own), p)


@inlined
def _talks(agent, opinion, p, state):
    """Whether an agent tells its opinion: the more probably the greater the risk it perceives."""
    return uniform(draw(state)) < math.pow(opinion, 1.0 / at(p.beta, agent))


def _make(variant: Variant) -> tuple[Callable[..., None], Callable[..., Any]]:
    two_sided = variant.two_sided

    def meet(opinions, before, start, i, j, p, word, state, spare):
        # Both tell the opinions they had before they met.
        own, other = opinions[i], opinions[j]
        if _talks(j, other, p, state):
            opinions[i] = _told(i, own, other, 1.0 - at(p.trust, i), p)
        if two_sided and _talks(i, own, p, state):
            opinions[j] = _told(j, other, own, 1.0 - at(p.trust, j), p)

    meetings, room = by_pairs(variant, inlined(meet))

    def step(opinions, before, start, contacts, timing, p, queue, state, spare, space):
        for source in range(p.information.size):
            for place in range(contacts.firsts.size):
                agent = np.int64(contacts.firsts[place])
                opinions[agent] = _told(agent, opinions[agent], p.information[source], at(p.trust, agent), p)
        meetings(opinions, before, start, contacts, timing, p, queue, state, spare, space)

    return inlined(step), room


def _transition(received: Received, p: Parameters) -> np.ndarray:
    """Messages are what was told in a step, in that order, after what the institution said."""
    opinion = received.own

    def feel(weighed: np.ndarray) -> np.ndarray:
        return np.select([p.sensitivity == 1, p.sensitivity == -1], [(1 + weighed) / 2, weighed / 2], weighed)

    for said in p.information:
        opinion = feel((1 - p.trust) * opinion + p.trust * said)
    for said, present in zip(received.said.T, received.present.T, strict=True):
        opinion = np.where(present, feel(p.trust * opinion + (1 - p.trust) * said), opinion)
    return opinion


MODEL = ClassicModel(
    name="cognitive",
    family="reinforcing",
    parameters=Parameters,
    kernel=step_kernel(_make),
    transition=_transition,
    units=SHARES,
    orders=("random", "permutation", "sequential"),
    picks=("listener", "speaker", "edge"),
    sides=("two", "one"),
    keeps_consensus=False,
    example={"steps": 60, "information": 0.2, "trust": 0.05, "beta": 0.5},
)
