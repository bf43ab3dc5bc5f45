"""Unanimous panels: the q-voter model of Castellano, Muñoz & Pastor-Satorras 2009 and its nonconformists."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from opinionsim.classic._groups import panel, received
from opinionsim.classic._model import ORDERS, ClassicModel, Parameter, Source
from opinionsim.classic._random import draw, index, shuffle, uniform
from opinionsim.classic._transition import Transition
from opinionsim.compilation import at

__all__ = ["MODEL", "Parameters"]


class Parameters(NamedTuple):
    """Of the model, as its kernel takes them."""

    q: Annotated[int, Parameter(2, "neighbours that are asked", "q", low=1, high=1000, per_agent=False)]
    epsilon: Annotated[np.ndarray, Parameter(0.0, "probability of flipping where they are not unanimous",
                                             r"\varepsilon", 0.0, 1.0)]  # fmt: skip
    independence: Annotated[np.ndarray, Parameter(0.0, "probability of flipping a coin instead of asking",
                                                  "p", 0.0, 1.0)]  # fmt: skip
    anticonformity: Annotated[np.ndarray, Parameter(0.0, "probability of taking the opposite of a unanimous panel",
                                                    r"\bar p", 0.0, 1.0)]  # fmt: skip
    zealot: Annotated[np.ndarray, Parameter(0, "1 for agents that never change", "z", 0, 1)]
    repetition: Annotated[bool, Parameter(True, "whether a neighbour can be asked more than once; if not, an agent "
                                                "of fewer than q neighbours asks all", per_agent=False)]  # fmt: skip


def _kernel(opinions, start, contacts, timing, p, pairs, state, spare, record):
    synchronous = timing.order == 3
    before = opinions.copy() if synchronous else opinions
    # Fields of their own: a tuple of arrays that is handed on costs more than a panel.
    starts, others = contacts.starts, contacts.others
    plain = p.repetition and contacts.cumulative.size == 0
    queue = contacts.firsts.copy()
    members = np.empty(p.q, dtype=np.int64)
    for step in range(timing.steps):
        if synchronous:
            before[:] = opinions
        if timing.order == 1:
            # From the same list each time, so that a sweep rests on nothing but the stream.
            queue[:] = contacts.firsts
            shuffle(state, queue)
        for event in range(timing.events):
            place = index(draw(state), queue.size) if timing.order == 0 else event
            agent = np.int64(queue[place])
            if plain:
                count = members.size
                for asked in range(count):
                    if contacts.complete:
                        other = index(draw(state), contacts.n - 1)
                        members[asked] = other + np.int64(other >= agent)
                    else:
                        first = starts[agent]
                        members[asked] = others[first + index(draw(state), starts[agent + 1] - first)]
            else:
                count = panel(contacts, agent, p.repetition, state, members)
            if at(p.zealot, agent) == 1:
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
            if unanimous:
                contrary = uniform(draw(spare)) < at(p.anticonformity, agent)
                opinions[agent] = 1.0 - said if contrary else said
            elif uniform(draw(spare)) < at(p.epsilon, agent):
                opinions[agent] = 1.0 - before[agent]
        if (step + 1) % timing.every == 0:
            record[(step + 1) // timing.every - 1] = opinions


def _encode(values: np.ndarray, span: tuple[float, float]) -> np.ndarray:
    """The ends of the range as 0 and 1."""
    return np.where(values == span[1], 1.0, 0.0)


def _decode(values: np.ndarray, span: tuple[float, float]) -> np.ndarray:
    return np.where(values > 0.5, span[1], span[0])


def _transition(before: np.ndarray, messages: np.ndarray, weights: Any, p: Parameters, span: Any) -> Transition:
    """Messages are what the panel says."""
    low, high = span
    other = low + high - before
    said, present = received(messages)
    against = ((said != before[:, None]) & (present > 0)).sum(axis=1)
    unanimous = (against == 0) | (against == present.sum(axis=1))
    differs = against > 0
    conform = np.where(differs, 1.0 - p.anticonformity, p.anticonformity)
    asked = np.where(unanimous, conform, p.epsilon)
    flip = np.where(np.asarray(p.zealot) == 1, 0.0, p.independence / 2 + (1 - p.independence) * asked)
    return Transition(np.stack([before, other], axis=1), np.stack([1 - flip, flip], axis=1))


MODEL = ClassicModel(
    name="q-voter",
    title="q-voter",
    kind="discrete",
    family="assimilative",
    summary="An agent asks q neighbours and takes their opinion if they agree; otherwise it changes its mind with "
    "probability epsilon. Some agents decide by a coin (independence), or against those who agree (anticonformity).",
    equation=r"P(x_i \to \text{other}) = \frac{p}{2} + (1 - p)\begin{cases} 1 - \bar p & q \text{ neighbours agree on "
    r"the other opinion}\\ \bar p & q \text{ neighbours agree with } x_i\\ \varepsilon & \text{otherwise}\end{cases}",
    behaviour="With q = 1 and no epsilon, independence or anticonformity the voter model. On the complete graph the"
    " share c of one opinion drifts at (1 - c) c^q - c (1 - c)^q + epsilon ((1 - c)(1 - c^q - (1 - c)^q) "
    "- c (1 - c^q - (1 - c)^q)) an update of each agent; without independence and for small epsilon the "
    "larger side wins. With independence p there is a majority below p = (q - 1) / (q - 1 + 2^(q - 1)), "
    "and none above, for q up to 5.",
    source=(
        Source(
            "Castellano, Muñoz & Pastor-Satorras (2009). Nonlinear q-voter model. Physical Review E 80, 041129",
            "10.1103/PhysRevE.80.041129",
        ),
        Source(
            "Nyczka, Sznajd-Weron & Cisło (2012). Phase transitions in the q-voter model with two types of "
            "stochastic driving. Physical Review E 86, 011105",
            "10.1103/PhysRevE.86.011105",
        ),
    ),
    parameters=Parameters,
    range=(0.0, 1.0),
    kernel=_kernel,
    transition=_transition,
    encode=_encode,
    decode=_decode,
    orders=ORDERS,
    keeps_consensus=True,
    states="two",
    example={"n": 200, "network": "complete", "initial": "uniform", "steps": 60, "q": 3, "independence": 0.1},
)
