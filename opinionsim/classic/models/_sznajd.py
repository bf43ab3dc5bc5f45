"""Pairs that agree convince others: the model of Sznajd-Weron & Sznajd 2000 on any network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from opinionsim.classic._declaration import ClassicModel, Parameter
from opinionsim.classic._transition import Received
from opinionsim.classic.kernels._contacts import Variant, topology
from opinionsim.classic.kernels._random import draw, index
from opinionsim.classic.kernels._stepping import step_kernel
from opinionsim.foundation.compilation import allocating, inlined


class Parameters(NamedTuple):
    r"""Sznajd.

    A random agent and a random one of those who hear it form a pair. If they agree, everyone who hears either of them
    takes their opinion. Any number of opinions is possible. A step is N pairs. If the pair disagrees, nothing happens
    by default. With crossed disagreement, each of the two convinces the agents who hear only the other. This is the
    original rule on a chain; on other networks it is an extension, in which agents who hear both keep their opinions.

    - Equation: x_i = x_j:\quad x_k \leftarrow x_i \quad \text{for all } k \in N(i) \cup N(j)
    - Behaviour: If disagreement has no effect, connected networks always end in consensus. On the complete graph, the
      first pair that agrees convinces everyone, so a share c of one of two opinions wins with probability c^2 / (c^2 +
      (1 - c)^2) in the limit of many agents. Crossed disagreement on a chain is the original rule, which also allows
      the alternating state.
    - Source: Sznajd-Weron & Sznajd 2000
    - Source: Stauffer et al. 2000
    """

    disagreeing: Any = Parameter(
        "nothing",
        "what happens if a pair disagrees: nothing, or each convinces those around the other",
        choices=("nothing", "cross"),
    )


@inlined
def _convince(opinions, contacts, speaker, opinion):
    """Everybody who hears a speaker takes an opinion."""
    for place in range(contacts.starts[speaker], contacts.starts[speaker + 1]):
        opinions[contacts.others[place]] = opinion


@inlined
def _cross(opinions, contacts, one, two):
    """Those who hear only the one take the opinion of the other, and the reverse; audiences are in order."""
    first, second = opinions[one], opinions[two]
    here, there = contacts.starts[one], contacts.starts[two]
    end, stop = contacts.starts[one + 1], contacts.starts[two + 1]
    nobody = np.int64(contacts.n)
    while here < end or there < stop:
        left = np.int64(contacts.others[here]) if here < end else nobody
        right = np.int64(contacts.others[there]) if there < stop else nobody
        if left < right and left != two:
            opinions[left] = second
        if right < left and right != one:
            opinions[right] = first
        here += np.int64(left <= right)
        there += np.int64(right <= left)


@allocating
def _united(opinions, contacts, p, spare):
    """Whether a pair has convinced everybody, in the complete graph."""
    return np.zeros(1, dtype=np.bool_)


def _make(variant: Variant) -> tuple[Callable[..., None], Callable[..., Any]]:
    meet, complete, cross = topology(variant).meet, variant.complete, variant.option("disagreeing") == 1

    def step(opinions, before, start, contacts, timing, p, queue, state, spare, united):
        for _ in range(timing.events):
            one = np.int64(contacts.firsts[index(draw(state), contacts.firsts.size)])
            two = meet(contacts, one, draw(state))
            if complete:
                # One pair that agrees convinces everybody; of one that disagrees everybody else hears both.
                if not united[0] and opinions[one] == opinions[two]:
                    for agent in range(opinions.size):
                        opinions[agent] = opinions[one]
                    united[0] = True
            elif opinions[one] == opinions[two]:
                _convince(opinions, contacts, one, opinions[one])
                _convince(opinions, contacts, two, opinions[one])
            elif cross:
                _cross(opinions, contacts, one, two)

    return inlined(step), _united


def _transition(received: Received, p: Parameters) -> np.ndarray:
    """Messages are those of a pair, the one that is heard first; the agent hears the first one alone."""
    heard, other = received.said[:, 0], received.said[:, 1]
    return np.where((heard == other) | (p.disagreeing == 1), other, received.own)


MODEL = ClassicModel(
    name="sznajd",
    family="assimilative",
    parameters=Parameters,
    kernel=step_kernel(_make),
    transition=_transition,
    orders=("random",),
    picks=("speaker",),
    states="copied",
    example={"n": 225, "network": {"kind": "lattice"}, "steps": 20},
)
