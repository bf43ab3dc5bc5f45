"""Bounded confidence by trust and by sign: the family of Toccaceli, Milli & Rossetti 2020."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from opinionsim.classic._declaration import CENTRED, ORDERS, ClassicModel, Parameter
from opinionsim.classic._transition import Received
from opinionsim.classic.kernels._contacts import Variant, topology, visitor
from opinionsim.classic.kernels._influences import ZEALOT, disturbed, turns
from opinionsim.classic.kernels._pairwise import pairwise_kernel
from opinionsim.classic.kernels._random import draw, index
from opinionsim.classic.kernels._stepping import Machine, Stop, no_room, step_kernel
from opinionsim.classic.models import _deffuant as deffuant
from opinionsim.foundation.compilation import at, inlined

_EPSILON = Parameter(
    0.4, "confidence: distance at which opinions are near", r"\varepsilon", scaled=True, reaches="threshold"
)
_TRUST = Parameter(0.1, "trust in others; on a network with weights, from 0 to 1, times the weight", "w_i", "[0, 1]")


class Group(NamedTuple):
    r"""Weighted Hegselmann-Krause bounded confidence.

    An agent multiplies each near opinion that it hears by its trust in it, and adds the mean to its own opinion. The
    closer the agent is to an end of the range, the less it moves. Opinions have a sign: the middle of the range is 0.

    - Equation: x_i \leftarrow x_i + (1 - |x_i|) \frac{1}{|\Gamma_i|} \sum_{j \in \Gamma_i} w_{ij} x_j,\quad \Gamma_i =
      \{j \in N(i) : |x_j - x_i| \le \varepsilon\}
    - Behaviour: Agents that agree on x > 0 do not stay there: they follow x + w x (1 - |x|) to the end of the range,
      and agents below 0 move to the other end. Confidence decides whether one sign wins before that. Zealots are the
      stubborn agents of the source.
    - Source: Toccaceli et al. 2020
    - Source: Milli 2021
    """

    epsilon: Any = _EPSILON
    trust: Any = _TRUST
    threshold: Any = deffuant.THRESHOLD
    zealot: Any = ZEALOT
    limits: tuple[float, float] = (-1.0, 1.0)


class Pair(NamedTuple):
    r"""Attraction-repulsion weighted bounded confidence.

    An agent meets one of those it hears. It moves towards it if their opinions are near and away from it otherwise, by
    half the sum of its own opinion and the trusted part of the other. The closer the agent is to an end of the range,
    the less it moves. Opinions have a sign: the middle of the range is 0.

    - Equation: s = x_i + w_{ij} x_j:\quad x_i \leftarrow x_i \pm \operatorname{sign}(x_j - x_i) \frac{|s|}{2} (1 -
      |x_i|),\quad + \text{ where } |x_j - x_i| \le \varepsilon,\ - \text{ elsewhere}
    - Behaviour: The step does not shrink with the distance, so attraction can take an agent past the other. Repulsion
      drives opinions to both ends. With the rule sum, agents drift to the end on their side, as in the weighted
      Hegselmann-Krause model. NDlib sets an opinion to 0 if its variant should do nothing; in opinionsim it stays the
      same.
    - Source: Toccaceli et al. 2020
    - Source: Milli 2021
    """

    epsilon: Any = _EPSILON
    trust: Any = _TRUST
    rule: Any = Parameter(
        "both",
        "effect of a meeting: near opinions attract and others repel, only one of these, or near ones add up",
        choices=("both", "attraction", "repulsion", "sum"),
    )
    threshold: Any = deffuant.THRESHOLD
    zealot: Any = ZEALOT
    limits: tuple[float, float] = (-1.0, 1.0)


def _prepare(p: Any) -> Any:
    half = (p.limits[1] - p.limits[0]) / 2
    return p._replace(limits=(-half, half))


def _by_all(variant: Variant) -> tuple[Callable[..., None], Callable[..., Any]]:
    """One step of updates by all that an agent hears."""
    reach, partner, _ = topology(variant)
    visit, rests, weighted = visitor(variant), turns(variant).rests, variant.weighted

    def step(opinions, before, start, contacts, timing, p, queue, state, spare, space):
        for event in range(timing.events):
            agent = visit(event, state, queue)
            if rests(agent, p):
                continue
            own, epsilon = before[agent], at(p.epsilon, agent)
            said, near = 0.0, 0
            for place in range(reach(contacts, agent)):
                other = before[partner(contacts, agent, place)]
                if abs(other - own) < epsilon:
                    said += contacts.weights[contacts.starts[agent] + place] * other if weighted else other
                    near += 1
            if near > 0:
                room = 1.0 - abs(own) / p.limits[1]
                moved = own + at(p.trust, agent) * said / near * room
                opinions[agent] = min(max(moved, p.limits[0]), p.limits[1])

    return inlined(step), no_room


@inlined
def _moved(i, own, other, weight, p):
    """The opinion of agent i after one that it trusts by a weight."""
    gap, added = other - own, own + weight * other
    near, rule = abs(gap) < at(p.epsilon, i), p.rule
    if rule == 3:
        way = added if near else 0.0
    elif (rule == 1 and not near) or (rule == 2 and near):
        way = 0.0
    else:
        towards = np.sign(gap) if near else -np.sign(gap)
        way = towards * abs(added)
    moved = own + 0.5 * way * (1.0 - abs(own) / p.limits[1])
    return min(max(moved, p.limits[0]), p.limits[1])


@inlined
def _update(i, j, own, other, start, p, word, spare):
    return _moved(i, own, other, at(p.trust, i), p)


def _by_edges(variant: Variant) -> tuple[Callable[..., None], Callable[..., Any]]:
    """One step of meetings on a network with weights, which are trust: partners are drawn with equal chances."""
    visit, rests = visitor(variant), turns(variant).rests

    def step(opinions, before, start, contacts, timing, p, queue, state, spare, space):
        for event in range(timing.events):
            i = visit(event, state, queue)
            place = contacts.starts[i] + index(draw(state), contacts.starts[i + 1] - contacts.starts[i])
            if not rests(i, p):
                weight = at(p.trust, i) * contacts.weights[place]
                opinions[i] = _moved(i, before[i], before[np.int64(contacts.others[place])], weight, p)

    return inlined(step), no_room


_on_edges, _in_pairs = step_kernel(_by_edges), pairwise_kernel(_update)


def _kernel(variant: Variant, stop: Stop | None, machine: Machine) -> Callable[..., None]:
    return (_on_edges if variant.weighted and not variant.given else _in_pairs)(variant, stop, machine)


@disturbed
def _after_all(received: Received, p: Group) -> np.ndarray:
    half = (received.limits[1] - received.limits[0]) / 2
    near = (np.abs(received.said - received.own[:, None]) < np.reshape(p.epsilon, (-1, 1))) & received.present
    said = (received.weights * received.said * near).sum(axis=1) / np.maximum(near.sum(axis=1), 1)
    moved: np.ndarray = received.own + p.trust * said * (1 - np.abs(received.own) / half)
    return moved.clip(-half, half)


@disturbed
def _after_one(received: Received, p: Pair) -> np.ndarray:
    half, own, said = (received.limits[1] - received.limits[0]) / 2, received.own, received.said[:, 0]
    added = (own + p.trust * received.weights[:, 0] * said) / 2 * (1 - np.abs(own) / half)
    near = np.abs(said - own) < p.epsilon
    attracted, repelled = (own + sign * np.sign(said - own) * np.abs(added) for sign in (1, -1))
    found = (
        np.where(near, attracted, repelled),
        np.where(near, attracted, own),
        np.where(near, own, repelled),
        np.where(near, own + added, own),
    )
    return found[p.rule].clip(-half, half)


WEIGHTED = ClassicModel(
    name="weighted-hegselmann-krause",
    family="reinforcing",
    parameters=Group,
    range=(-1.0, 1.0),
    kernel=step_kernel(_by_all),
    transition=_after_all,
    units=CENTRED,
    prepare=_prepare,
    orders=ORDERS,
    needs=frozenset({"partners", "shares"}),
    keeps_consensus=False,
    at_rest="opinions approach the ends of the range without end.",
    example={"n": 150, "steps": 60, "epsilon": 0.6},
)

ATTRACTION_REPULSION = ClassicModel(
    name="attraction-repulsion",
    family="repulsive",
    parameters=Pair,
    range=(-1.0, 1.0),
    kernel=_kernel,
    update=_update,
    transition=_after_one,
    units=CENTRED,
    prepare=_prepare,
    orders=ORDERS,
    needs=frozenset({"partners", "shares"}),
    at_rest="steps do not shrink with the distance of opinions, so agents that disagree keep moving.",
    example={"n": 150, "steps": 60, "epsilon": 0.6},
)
