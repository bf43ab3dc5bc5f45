"""Unanimous panels: the q-voter model of Castellano, Muñoz & Pastor-Satorras 2009 and its nonconformists."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from opinionsim.classic._declaration import ENDS, ORDERS, ClassicModel, Parameter
from opinionsim.classic._transition import Received, Transition
from opinionsim.classic.kernels._contacts import Variant, topology, visitor
from opinionsim.classic.kernels._frozen import NO_DISCORD, by_agents, no_discord
from opinionsim.classic.kernels._groups import panel_drawer
from opinionsim.classic.kernels._influences import MEDIA, MEDIA_OPINIONS, ZEALOT, disturbed, medium_of
from opinionsim.classic.kernels._random import draw, uniform
from opinionsim.classic.kernels._stepping import Stop, step_kernel
from opinionsim.errors import SpecError
from opinionsim.foundation.compilation import allocating, at, inlined

if TYPE_CHECKING:
    from opinionsim.classic.kernels._process import Setup


class Parameters(NamedTuple):
    r"""q-voter.

    An agent asks q neighbours and takes their opinion if they agree; otherwise it changes its mind with probability
    epsilon. Some agents decide by tossing a coin (independence), or against a unanimous panel (anticonformity).

    - Equation: P(x_i \to \text{other}) = \frac{p}{2} + (1 - p)\begin{cases} 1 - \bar p & q \text{ neighbours agree on
      the other opinion}\\ \bar p & q \text{ neighbours agree with } x_i\\ \varepsilon & \text{otherwise}\end{cases}
    - Behaviour: With q = 1 and no epsilon, independence or anticonformity, this is the voter model. On the complete
      graph, the share c of one opinion drifts at (1 - c) c^q - c (1 - c)^q + epsilon ((1 - c)(1 - c^q - (1 - c)^q) - c
      (1 - c^q - (1 - c)^q)) per update of each agent. Without independence and for small epsilon, the larger side wins.
      With independence p, there is a majority below p = (q - 1) / (q - 1 + 2^(q - 1)) and none above, for q up to 5.
      Other models call independence noise.
    - Source: Castellano et al. 2009a
    - Source: Nyczka et al. 2012
    """

    q: Any = Parameter(2, "number of neighbours asked", "q", "[1, 1000]", per_agent=False)
    epsilon: Any = Parameter(0.0, "probability of flipping if they are not unanimous", r"\varepsilon", "[0, 1]")
    independence: Any = Parameter(0.0, "probability of tossing a coin instead of asking", "p", "[0, 1]")
    anticonformity: Any = Parameter(0.0, "probability of taking the opposite of a unanimous panel", r"\bar p", "[0, 1]")
    zealot: Any = ZEALOT
    media: Any = replace(
        MEDIA, meaning="probability that an agent whose turn it is meets a medium, which acts as a unanimous panel"
    )
    media_opinions: Any = MEDIA_OPINIONS
    repetition: Any = Parameter(
        True, "whether a neighbour can be asked more than once; if not, an agent with fewer than q neighbours asks all"
    )


@allocating
def _members(opinions, contacts, p, spare):
    return np.empty(p.q, dtype=np.int64)


def _panel_drawer(variant: Variant) -> Callable[..., int]:
    """``draw(contacts, agent, state, members)``: draws those who are asked; returns how many they are."""
    if not variant.option("repetition"):
        return panel_drawer(variant)
    meet = topology(variant).meet

    def draw_members(contacts, agent, state, members):
        for asked in range(members.size):
            members[asked] = meet(contacts, agent, draw(state))
        return members.size

    return inlined(draw_members)


def _make(variant: Variant) -> tuple[Callable[..., None], Callable[..., Any]]:
    draw_members, visit = _panel_drawer(variant), visitor(variant)
    zealots, mediated = variant.option("zealot"), variant.option("media")

    def step(opinions, before, start, contacts, timing, p, queue, state, spare, members):
        for event in range(timing.events):
            agent = visit(event, state, queue)
            count = draw_members(contacts, agent, state, members)
            if zealots and at(p.zealot, agent) == 1:
                continue
            chance = uniform(draw(state))
            if chance < at(p.independence, agent):
                # What is left of the draw is even, and says which side the coin falls on.
                if 2.0 * chance < at(p.independence, agent):
                    opinions[agent] = 1.0 - before[agent]
                continue
            said = before[members[0]]
            unanimous = True
            for asked in range(1, count):
                unanimous &= before[members[asked]] == said
            if mediated and uniform(draw(spare)) < at(p.media, agent):
                said, unanimous = medium_of(p, spare), True
            if unanimous:
                contrary = uniform(draw(spare)) < at(p.anticonformity, agent)
                opinions[agent] = 1.0 - said if contrary else said
            elif uniform(draw(spare)) < at(p.epsilon, agent):
                opinions[agent] = 1.0 - before[agent]

    return inlined(step), _members


def _frozen(setup: Setup) -> Stop:
    variant, p = setup.variant(), setup.p
    for name in ("independence", "anticonformity"):
        if np.any(np.asarray(getattr(p, name)) > 0):
            raise SpecError(f"until: frozen cannot be reached in q-voter if {name} is above 0: agents keep changing")
    if p.repetition or np.any(np.asarray(p.epsilon) > 0):
        return no_discord(setup)

    def restless(agent, high, known, n_high, p):
        against = known - n_high if high else n_high
        return at(p.zealot, agent) == 0 and against >= min(p.q, known)

    return by_agents(variant, inlined(restless))


@disturbed
def _transition(received: Received, p: Parameters) -> Transition:
    """Messages are what the panel says."""
    own = received.own
    against = ((received.said != own[:, None]) & received.present).sum(axis=1)
    unanimous = (against == 0) | (against == received.present.sum(axis=1))
    conform = np.where(against > 0, 1.0 - p.anticonformity, p.anticonformity)
    asked = np.where(unanimous, conform, p.epsilon)
    flip = p.independence / 2 + (1 - p.independence) * asked
    return Transition(np.stack([own, 1 - own], axis=1), np.stack([1 - flip, flip], axis=1))


MODEL = ClassicModel(
    name="q-voter",
    family="assimilative",
    parameters=Parameters,
    kernel=step_kernel(_make),
    transition=_transition,
    units=ENDS,
    frozen=_frozen,
    at_rest=f"{NO_DISCORD} This applies with repetition or epsilon; otherwise, no agent that can change may have "
    "min(q, degree) opponents among those it hears. With independence or anticonformity, agents never come to rest.",
    orders=ORDERS,
    states="two",
    example={"steps": 60, "q": 3, "independence": 0.1},
)
