"""Copying and moving ties: Holme & Newman 2006, and the co-evolving voter model of Vazquez et al. 2008."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from opinionsim.classic._declaration import ClassicModel, Parameter
from opinionsim.classic._transition import Received, Transition
from opinionsim.classic.kernels._contacts import Variant
from opinionsim.classic.kernels._random import draw, uniform
from opinionsim.classic.kernels._stepping import Stop, no_room, step_kernel
from opinionsim.classic.kernels._ties import (
    Ties,
    anybody,
    far_tie,
    item_at,
    member_alike,
    member_of_all,
    move,
    move_tie,
    note_at,
    number_alike,
    number_of_all,
    owner_of,
    size_of,
    target_finder,
)
from opinionsim.classic.kernels._until import one_number
from opinionsim.errors import SpecError
from opinionsim.foundation.compilation import at, inlined
from opinionsim.networks import Network

if TYPE_CHECKING:
    from opinionsim.classic.kernels._process import Setup


class Parameters(NamedTuple):
    r"""Co-evolution of networks and opinions (Holme-Newman).

    An agent and one of its ties are drawn at random. With probability rewire, the other end of the tie moves to an
    agent with the same opinion that the first agent is not tied to yet. Otherwise, or if there is no such agent, the
    first agent takes over the opinion at the other end. An agent without ties does nothing until another agent chooses
    it.

    - Equation: \begin{cases} (i, j) \to (i, k),\ x_k = x_i & \text{with probability } \phi\\ x_i \leftarrow x_j &
      \text{otherwise} \end{cases}
    - Behaviour: A network ends in components of one opinion each. With rewire = 0, these are the components of the
      initial network, each in consensus; with rewire near 1, they are the groups that held each opinion at the start.
      In between there is a transition: with 4 ties per agent and 10 agents per opinion, it is at rewire = 0.458, where
      the sizes of communities follow a power law (Holme & Newman 2006). With two opinions and only discordant ties, the
      network breaks in two above rewire = (k - 2) / (k - 1), for k ties per agent, in the approximation of Vazquez et
      al. 2008. No agent is ever tied to itself or twice to another, and an agent copies if there is no one left to tie
      to; the paper leaves both questions open.
    - Source: Holme & Newman 2006
    - Source: Vazquez et al. 2008
    """

    rewire: Any = Parameter(0.5, "probability that the tie moves; otherwise the opinion is copied", r"\phi", "[0, 1]")
    target: Any = Parameter(
        "similar",
        "candidates for the new tie: agents with the same opinion, or all agents",
        choices=("similar", "random"),
    )
    ties: Any = Parameter(
        "any",
        "ties that can be drawn: any, or only those between agents that differ",
        choices=("any", "discordant"),
    )


def _ties(network: Network, states: np.ndarray, p: Parameters) -> Ties:
    """Ties, with agents grouped by opinion."""
    return Ties.of(network, np.unique(states, return_inverse=True)[1].reshape(-1), network.n)


def _make(variant: Variant) -> tuple[Callable[..., None], Callable[..., Any]]:
    alike, choosy = variant.option("target") == 0, variant.option("ties") == 1
    number, member, tries = (number_alike, member_alike, 8) if alike else (number_of_all, member_of_all, 64)
    find = target_finder(number, member, anybody, tries)

    def step(opinions, before, start, ties, timing, p, queue, state, spare, space):
        ends, groups = ties.ends, ties.groups
        for _ in range(timing.events):
            # A number in [0, 1) times that of agents is an agent and, behind the point, a number in [0, 1) again.
            drawn = uniform(draw(state)) * ties.n
            agent = np.int64(drawn)
            degree = size_of(ends, agent)
            if degree == 0:
                continue
            place = np.int64((drawn - agent) * degree)
            other = note_at(ends, agent, place)
            own, its = owner_of(groups, agent), owner_of(groups, other)
            if choosy and own == its:
                continue
            if uniform(draw(state)) < at(p.rewire, agent):
                found = find(opinions, ends, groups, ties.n, p, agent, state)
                if found >= 0:
                    move_tie(ends, item_at(ends, agent, place) ^ 1, found)
                    continue
            if own != its:
                move(groups, agent, its)
                opinions[agent] = opinions[other]

    return inlined(step), no_room


@inlined
def _none_differ(opinions, previous, ties, p, timing, memory):
    # No two numbers that differ are closer than the least of all.
    return not far_tie(opinions, ties.ends, memory, 5e-324)


def _frozen(setup: Setup) -> Stop:
    if setup.parameters["target"] == "random" and setup.parameters["ties"] == "any" and np.max(setup.p.rewire) > 0:
        raise SpecError(
            "until: frozen cannot be reached in holme-newman if ties of agents with one opinion may move to others; "
            "set target: similar, or ties: discordant"
        )
    return Stop(_none_differ, one_number)


def _transition(received: Received, p: Parameters) -> Transition:
    """Messages are the opinions of all neighbours, of whom one is drawn; there is somebody to be tied to instead."""
    present = received.present
    drawn = present / np.maximum(present.sum(axis=1), 1)[:, None]
    copies = drawn * (1 - np.broadcast_to(p.rewire, received.own.shape))[:, None]
    stays = 1 - copies.sum(axis=1)
    values = np.where(present, received.said, received.own[:, None])
    return Transition(np.column_stack([received.own, values]), np.column_stack([stays, copies]))


MODEL = ClassicModel(
    name="holme-newman",
    family="assimilative",
    parameters=Parameters,
    kernel=step_kernel(_make),
    ties=_ties,
    transition=_transition,
    orders=("random",),
    states="copied",
    needs=frozenset(),
    frozen=_frozen,
    at_rest="no tie joins agents with different opinions, which is checked after every step. Ties between agents "
    "with the same opinion may still move, but only to others with that opinion; with target 'random' this "
    "requires ties 'discordant'.",
    example={
        "n": 400,
        "network": {"kind": "erdos-renyi", "p": 0.01},
        "initial": {"kind": "levels", "count": 40},
        "steps": 200,
        "rewire": 0.4,
    },
)
